-- A RocketMQ dissector for tshark, the baseline of the benchmark: correct and as fast as Lua allows.
--
-- Frames are put together across segments (dissect_tcp_pdus); late segments need the preference
-- tcp.reassemble_out_of_order. Both header forms are read. A JSON header is not parsed: the members
-- are found by pattern, which is right because a quote inside a JSON string is always escaped.
-- Every command adds every field, so that the n-th values of a packet belong together.

local rmq = Proto("rmqbench", "RocketMQ remoting")

local f = rmq.fields
f.code = ProtoField.int32("rmqbench.code", "Code")
f.opaque = ProtoField.int32("rmqbench.opaque", "Opaque")
f.flag = ProtoField.int32("rmqbench.flag", "Flag")
f.language = ProtoField.string("rmqbench.language", "Language")
f.version = ProtoField.int32("rmqbench.version", "Version")
f.remark = ProtoField.string("rmqbench.remark", "Remark")
f.topic = ProtoField.string("rmqbench.topic", "Topic")
f.group = ProtoField.string("rmqbench.group", "Group")
f.queue = ProtoField.string("rmqbench.queue", "Queue")
f.key = ProtoField.string("rmqbench.key", "Unique key")
f.header_length = ProtoField.uint32("rmqbench.header_length", "Header length")
f.body_length = ProtoField.uint32("rmqbench.body_length", "Body length")

local match, unpack = string.match, Struct.unpack

local LANGUAGES = {
  [0] = "JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO",
  "PHP", "OMS", "RUST", "NODE_JS",
}

-- requests whose field names are one letter each
local SHORT_NAMES = { [310] = true, [320] = true, [325] = true }

local function read_json(header)
  local code = tonumber(match(header, '"code"%s*:%s*(%-?%d+)')) or 0
  local row = {
    code = code,
    opaque = tonumber(match(header, '"opaque"%s*:%s*(%-?%d+)')) or 0,
    flag = tonumber(match(header, '"flag"%s*:%s*(%d+)')) or 0,
    language = match(header, '"language"%s*:%s*"([^"]*)"') or "",
    version = tonumber(match(header, '"version"%s*:%s*(%d+)')) or 0,
    remark = match(header, '"remark"%s*:%s*"([^"]*)"') or "",
    key = match(header, 'UNIQ_KEY\\u0001([^\\"]*)') or "",
  }
  if row.flag % 2 == 0 and SHORT_NAMES[code] then
    row.group = match(header, '"a"%s*:%s*"([^"]*)"') or ""
    row.topic = match(header, '"b"%s*:%s*"([^"]*)"') or ""
    row.queue = match(header, '"e"%s*:%s*"?([^",}]*)') or ""
  else
    row.topic = match(header, '"topic"%s*:%s*"([^"]*)"') or ""
    row.group = match(header, '"consumerGroup"%s*:%s*"([^"]*)"')
      or match(header, '"producerGroup"%s*:%s*"([^"]*)"') or ""
    row.queue = match(header, '"queueId"%s*:%s*"?([^",}]*)') or ""
  end
  return row
end

local function read_binary(header)
  local code, language, version, opaque, flag, size = unpack(">I2BI2i4i4I4", header)
  local at = 18 + size
  local row = {
    code = code,
    opaque = opaque,
    flag = flag,
    language = LANGUAGES[language] or "",
    version = version,
    remark = header:sub(18, at - 1),
  }
  local stop = at + 4 + unpack(">I4", header, at)
  at = at + 4
  local fields = {}
  while at < stop do
    local length = unpack(">I2", header, at)
    local name = header:sub(at + 2, at + 1 + length)
    at = at + 2 + length
    length = unpack(">I4", header, at)
    fields[name] = header:sub(at + 4, at + 3 + length)
    at = at + 4 + length
  end
  if flag % 2 == 0 and SHORT_NAMES[code] then
    row.group, row.topic, row.queue = fields.a, fields.b, fields.e
  else
    row.group = fields.consumerGroup or fields.producerGroup
    row.topic, row.queue = fields.topic, fields.queueId
  end
  local properties = fields.i or fields.properties
  row.key = properties and match(properties, "UNIQ_KEY\1([^\2]*)")
  return row
end

local function frame_length(tvb, _, offset)
  return tvb(offset, 4):uint() + 4
end

local function dissect_frame(tvb, pinfo, tree)
  local size = tvb:reported_length_remaining()
  local header_length = tvb(5, 3):uint()
  if header_length + 8 > size then
    return size
  end
  local header = tvb:raw(8, header_length)
  local row
  if tvb(4, 1):uint() == 0 then
    row = read_json(header)
  else
    row = read_binary(header)
  end
  pinfo.cols.protocol = "RocketMQ"
  local node = tree:add(rmq, tvb())
  local range = tvb(8, header_length)
  node:add(f.code, range, row.code)
  node:add(f.opaque, range, row.opaque)
  node:add(f.flag, range, row.flag)
  node:add(f.language, range, row.language)
  node:add(f.version, range, row.version)
  node:add(f.remark, range, row.remark)
  node:add(f.topic, range, row.topic or "")
  node:add(f.group, range, row.group or "")
  node:add(f.queue, range, row.queue or "")
  node:add(f.key, range, row.key or "")
  node:add(f.header_length, tvb(5, 3), header_length)
  node:add(f.body_length, tvb(0, 4), size - 8 - header_length)
  return size
end

function rmq.dissector(tvb, pinfo, tree)
  dissect_tcp_pdus(tvb, tree, 8, frame_length, dissect_frame)
  return tvb:len()
end

local ports = DissectorTable.get("tcp.port")
for _, port in ipairs({ 8080, 8081, 9876, 10909, 10911 }) do
  ports:add(port, rmq)
end
