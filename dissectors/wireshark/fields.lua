-- The protocol, its fields and findings, as Wireshark's filters know them.
local rocketmq = Proto("rocketmq", "RocketMQ Remoting")
local fields, ext_fields, property_fields, experts = {}, {}, {}, {}
do
  local list = {}

  local function declare(name, make, abbreviation, label, ...)
    local field = make("rocketmq." .. abbreviation, label, ...)
    fields[name] = field
    list[#list + 1] = field
    return field
  end

  local P = ProtoField
  -- the frame
  declare("length", P.uint32, "length", "Length", base.DEC, nil, nil,
    "Bytes of the frame behind this number")
  declare("serialize_type", P.uint8, "serialize_type", "Serialization", base.DEC,
    tables.serialize_types)
  declare("header_length", P.uint24, "header_length", "Header length")
  declare("body_length", P.uint32, "body_length", "Body length")
  declare("missing", P.uint32, "missing", "Bytes of the frame that were not captured")
  declare("skipped", P.bytes, "skipped", "Bytes that belong to no frame seen whole")
  declare("proxy_header", P.bytes, "proxy_header", "HAProxy header")
  -- the command
  declare("kind", P.string, "kind", "Kind", base.NONE, "request, response or oneway")
  declare("code", P.int32, "code", "Code", base.DEC, nil, nil,
    "Request or response code, the real one")
  declare("wire_code", P.int32, "wire_code", "Code as the header carries it", base.DEC, nil, nil,
    "What a binary header has left of a code over 32767")
  declare("name", P.string, "name", "Name", base.NONE, "Name of the code")
  declare("operation", P.string, "operation", "Operation", base.NONE,
    "Name of the request code, of a response too")
  declare("opaque", P.int32, "opaque", "Opaque", base.DEC, nil, nil,
    "Number that pairs request and response")
  declare("flag", P.int32, "flag", "Flag")
  declare("language", P.string, "language", "Language")
  declare("version", P.int32, "version", "Version", base.DEC, nil, nil,
    "MQVersion ordinal of the sender")
  declare("version_name", P.string, "version_name", "Version name")
  declare("remark", P.string, "remark", "Remark")
  -- pairing
  declare("request_in", P.framenum, "request_in", "Request in", base.NONE, frametype.REQUEST)
  declare("response_in", P.framenum, "response_in", "Response in", base.NONE, frametype.RESPONSE)
  declare("request_code", P.int32, "request_code", "Request code", base.DEC, nil, nil,
    "Of a response: code of its request")
  declare("time", P.relative_time, "time", "Time", "Time from the request to the response")
  -- ext fields
  declare("ext", P.none, "ext", "Ext fields")
  declare("header_name", P.string, "header_name", "Header class")
  declare("other", P.string, "other", "Ext field of no known class", base.NONE, "name=value")
  -- messages
  declare("message_count", P.uint32, "message_count", "Messages")
  declare("message", P.none, "message", "Message")
  declare("properties", P.none, "message.properties", "Properties")
  declare("property", P.string, "property", "Property of the application", base.NONE, "name=value")
  declare("size", P.int32, "message.size", "Size")
  declare("magic", P.uint32, "message.magic", "Magic", base.HEX, tables.magics)
  declare("body_crc", P.uint32, "message.body_crc", "Body CRC", base.HEX)
  declare("queue_id", P.int32, "message.queue_id", "Queue id")
  declare("message_flag", P.int32, "message.flag", "Flag of the application")
  declare("queue_offset", P.int64, "message.queue_offset", "Queue offset")
  declare("physical_offset", P.int64, "message.physical_offset", "Commit log offset")
  declare("sys_flag", P.int32, "message.sys_flag", "sysFlag")
  declare("born_time", P.absolute_time, "message.born_timestamp", "Born", base.UTC)
  declare("born_host", P.string, "message.born_host", "Born host")
  declare("store_time", P.absolute_time, "message.store_timestamp", "Stored", base.UTC)
  declare("store_host", P.string, "message.store_host", "Store host")
  declare("reconsume_times", P.int32, "message.reconsume_times", "Reconsume times")
  declare("prepared_offset", P.int64, "message.prepared_transaction_offset",
    "Prepared transaction offset")
  declare("message_body", P.bytes, "message.body", "Body")
  declare("message_text", P.string, "message.text", "Text", base.NONE, "Body as text, decompressed")
  declare("compression", P.string, "message.compression", "Compression")
  declare("message_topic", P.string, "message.topic", "Topic")
  -- other bodies
  declare("body", P.none, "body", "Body")
  declare("data", P.bytes, "data", "Data")
  declare("body_kind", P.string, "body_kind", "Body", base.NONE, "Class or form of the body")
  declare("text", P.string, "text", "Text")
  declare("json", P.string, "json", "JSON value", base.NONE, "path=value")

  local MAKERS = {
    string = P.string,
    int = P.int32,
    long = P.int64,
    boolean = P.bool,
    double = P.double,
    BoundaryType = P.string,
  }
  for _, row in ipairs(tables.ext_fields) do
    local field = MAKERS[row.type]("rocketmq." .. row.abbreviation, row.name)
    ext_fields[row.name] = { field = field, type = row.type }
    list[#list + 1] = field
  end
  for _, row in ipairs(tables.properties) do
    local field = MAKERS[row.type]("rocketmq." .. row.abbreviation, row.name)
    property_fields[row.name] = { field = field, type = row.type, meaning = row.meaning }
    list[#list + 1] = field
  end
  rocketmq.fields = list

  local found = {}
  for _, row in ipairs(tables.experts) do
    local one = ProtoExpert.new(
      "rocketmq.expert." .. row.name,
      row.meaning,
      expert.group[row.group],
      expert.severity[row.severity]
    )
    experts[row.name] = one
    found[#found + 1] = one
  end
  rocketmq.experts = found

  rocketmq.prefs.ports = Pref.range("TCP ports", tables.ports,
    "Ports whose connections are taken for RocketMQ where the bytes agree", 65535)
  rocketmq.prefs.heuristics_first = Pref.bool("Look at bytes before ports", true,
    "Sets the preference tcp.try_heuristic_first: a client's port may be another protocol's")
  rocketmq.prefs.json_limit = Pref.uint("Values of a JSON body", 5000,
    "How many values of a JSON body are shown at most")
end
