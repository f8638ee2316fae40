-- The stream: frames out of segments, and the way into Wireshark.
--
-- A frame that goes on in later segments is asked for whole. Where no frame begins, the next bytes
-- that certainly begin one are looked for; what is not RocketMQ is left to other dissectors.
do
  local byte, sub, find, format = string.byte, string.sub, string.find, string.format
  local PREFIX = tables.prefix
  local tcp_stream = Field.new("tcp.stream")

  -- Total length behind the first number, serialization and header length of a prefix; nil where
  -- eight bytes are none.
  local function prefix_at(tvb, offset)
    local a, b, c, d, serialize_type, e, f, g = byte(tvb:raw(offset, PREFIX), 1, PREFIX)
    local total, header_length = ((a * 256 + b) * 256 + c) * 256 + d, (e * 256 + f) * 256 + g
    if total < 4 or total + 4 > tables.max_frame or header_length > total - 4 then
      return nil
    elseif serialize_type == tables.json_type then
      local is_object = tvb:len() - offset <= PREFIX or tvb(offset + PREFIX, 1):uint() == 0x7B
      return header_length >= 2 and is_object and total, serialize_type, header_length
    elseif serialize_type == tables.binary_type then
      return header_length >= tables.min_binary_header and total, serialize_type, header_length
    end
    return nil
  end

  -- Whether a frame begins here: 1 it does, 0 it does not, -1 too few bytes to tell; and how many
  -- bytes were read to see it.
  local function verdict_at(tvb, offset)
    local left = tvb:len() - offset
    if left < PREFIX then
      return byte(tvb:raw(offset, 1)) == 0 and -1 or 0, PREFIX
    end
    local total, serialize_type, header_length = prefix_at(tvb, offset)
    if not total or header_length > tables.max_sought_header then
      return 0, PREFIX
    end
    local there = math.min(header_length, left - PREFIX)
    if there == 0 then
      return -1, PREFIX
    end
    local raw = tvb:raw(offset + PREFIX, there)
    return headers.is_certain(serialize_type, raw, header_length) and 1 or 0, PREFIX + there
  end

  -- What a frame begins with: total length below 16 MiB, type, header length, first byte.
  local CANDIDATES = { "%z...%z...{", "%z...\1%z.." }
  if find("a\0", "a\0") then
    CANDIDATES = { "\0...\0...{", "\0...\1\0.." }
  end

  local FREE_WORK = 1024 * 1024 -- bytes of headers that one search may read without success, and
  local WORK_PER_BYTE = 16 -- so many more for each byte that it looks through

  -- The next place behind `offset` where a frame certainly begins, nil where there is none.
  local function search(tvb, offset)
    local raw = tvb:raw(offset)
    local best, left = nil, FREE_WORK + WORK_PER_BYTE * #raw
    for _, pattern in ipairs(CANDIDATES) do
      local at = find(raw, pattern)
      while at and (not best or at < best) and left > 0 do
        local verdict, read = verdict_at(tvb, offset + at - 1)
        left = left - read
        if verdict > 0 then
          best = at
          break
        end
        at = find(raw, pattern, at + 1)
      end
    end
    return best and offset + best - 1
  end

  local PROXY_V2 = "\r\n\r\n\0\r\nQUIT\n"

  -- The length of a HAProxy header that a stream begins with; 0 where there is none.
  local function proxy_header_length(tvb)
    local raw = tvb:raw(0, math.min(tvb:len(), 128))
    if sub(raw, 1, 6) == "PROXY " then
      local _, last = find(raw, "\r\n", 1, true)
      return last or 0
    elseif sub(raw, 1, #PROXY_V2) == PROXY_V2 and #raw >= 16 then
      local a, b = byte(raw, 15, 16)
      return 16 + a * 256 + b
    end
    return 0
  end

  local function note_columns(pinfo, summary)
    summary = texts.label(summary)
    if tostring(pinfo.cols.protocol) == "RocketMQ" then
      pinfo.cols.info:append("; " .. summary)
    else
      pinfo.cols.protocol:set("RocketMQ")
      pinfo.cols.info:set(summary)
    end
    pinfo.cols.info:fence()
  end

  local function say(node, kind, detail)
    node:add_proto_expert_info(experts[kind], texts.label(detail))
  end

  local MOST_FIELDS = 200000 -- of one frame: Wireshark gives a packet up that has a million

  local handle -- of the dissector: asked for with it, Wireshark tells of all fields at once

  local function new_view(pinfo, tree)
    handle = handle or Dissector.get("rocketmq")
    local visible = tree.visible
    local some = visible or tree:referenced(handle)
    return {
      visible = visible,
      some = some,
      visited = pinfo.visited,
      left = MOST_FIELDS,
      fields = {},
      say = say,
    }
  end

  local function add_prefix(view, node, tvb, offset, header_length, body_length)
    local add = messages.add
    add(view, node, fields.length, tvb, offset, 4)
    add(view, node, fields.serialize_type, tvb, offset + 4, 1)
    add(view, node, fields.header_length, tvb, offset + 5, 3)
    local item = add(view, node, fields.body_length, tvb, offset, 0, body_length)
    if item then
      item:set_generated()
    end
  end

  -- One frame, of which `there` bytes are in the buffer.
  local function dissect_frame(tvb, offset, there, pinfo, tree, stream)
    local total, serialize_type, header_length = prefix_at(tvb, offset)
    local node = tree:add(rocketmq, tvb(offset, there))
    local view = new_view(pinfo, tree)
    local body_length = total - 4 - header_length
    if view.some then
      add_prefix(view, node, tvb, offset, header_length, body_length)
    end
    local missing = total + 4 - there
    if missing > 0 then
      messages.add(view, node, fields.missing, tvb, offset, 0, missing)
      say(node, "frame_cut", format("%d bytes of the frame are not there", missing))
    end
    if PREFIX + header_length > there then
      note_columns(pinfo, "Frame cut inside its header")
      return
    end
    local header = headers.read(serialize_type, tvb:raw(offset + PREFIX, header_length))
    if not header then
      say(node, "bad_header", "the header does not parse")
      note_columns(pinfo, "Bad header")
      return
    end
    local exchange = pairing.exchange_of(pinfo, stream, header)
    local body_at, body = offset + PREFIX + header_length, nil
    if there > PREFIX + header_length then
      body = tvb(body_at, there - PREFIX - header_length)
    end
    note_columns(pinfo, commands.dissect(view, node, header, exchange, tvb, offset + PREFIX, body))
  end

  local function skip_bytes(tvb, offset, stop, pinfo, tree)
    local node = tree:add(rocketmq, tvb(offset, stop - offset))
    node:append_text(format(", %d bytes that belong to no frame seen whole", stop - offset))
    node:add(fields.skipped, tvb(offset, stop - offset))
    local total = stop - offset >= 4 and tvb(offset, 4):uint() or 0
    if total + 4 > tables.max_frame then
      node:add_proto_expert_info(experts.frame_too_large, format("%d bytes", total))
    else
      node:add_proto_expert_info(experts.bad_frame, format("%d bytes", stop - offset))
    end
    note_columns(pinfo, format("[%d bytes of no frame]", stop - offset))
  end

  local function wait_for(pinfo, offset, more)
    pinfo.desegment_offset = offset
    pinfo.desegment_len = more
  end

  -- Bytes at `offset` that begin no frame: where to go on, nil when the rest is not ours.
  local function resynchronize(tvb, offset, pinfo, tree, stream)
    local place = search(tvb, offset + 1)
    if not place and not stream.known then
      return nil
    end
    skip_bytes(tvb, offset, place or tvb:len(), pinfo, tree)
    return place or tvb:len()
  end

  -- The frames of a buffer; how many bytes were taken, 0 when they are not RocketMQ.
  local function dissect(tvb, pinfo, tree)
    local number = tcp_stream()
    number = number and number.value or -1
    local stream = pairing.stream_of(number)
    local size, offset = tvb:len(), 0
    if not stream.known or stream.first == pinfo.number then
      offset = proxy_header_length(tvb)
      if offset > 0 and offset < size and verdict_at(tvb, offset) ~= 0 then
        tree:add(rocketmq, tvb(0, offset)):add(fields.proxy_header, tvb(0, offset))
      else
        offset = 0
      end
    end
    local can_wait = pinfo.can_desegment > 0
    while offset < size do
      local left = size - offset
      local total = left >= PREFIX and prefix_at(tvb, offset)
      if left >= PREFIX and total and not stream.known and verdict_at(tvb, offset) == 0 then
        total = nil
      end
      if left < PREFIX and (stream.known or verdict_at(tvb, offset) < 0) and can_wait then
        wait_for(pinfo, offset, DESEGMENT_ONE_MORE_SEGMENT)
        return size
      elseif not total then
        offset = resynchronize(tvb, offset, pinfo, tree, stream)
        if not offset then
          return 0
        end
      else
        if not stream.known then
          stream.known, stream.first = true, pinfo.number
        end
        if total + 4 > left and can_wait then
          wait_for(pinfo, offset, total + 4 - left)
          return size
        end
        dissect_frame(tvb, offset, math.min(total + 4, left), pinfo, tree, number)
        offset = offset + math.min(total + 4, left)
      end
    end
    return size
  end

  function rocketmq.dissector(tvb, pinfo, tree)
    return dissect(tvb, pinfo, tree)
  end

  -- A client's port may be registered for another protocol (57000 is for IRC), which would take
  -- the whole conversation. Set for the session and not written to any file.
  local function look_at_bytes_first()
    local name = "tcp.try_heuristic_first"
    if rocketmq.prefs.heuristics_first and set_preference and not get_preference(name) then
      pcall(set_preference, name, true)
    end
  end

  function rocketmq.init()
    look_at_bytes_first()
    pairing.clear()
  end

  -- Whether bytes certainly begin with a frame, or have one behind the rest of another.
  local function are_rocketmq(tvb)
    if tvb:len() < PREFIX + 2 then
      return false
    end
    local start = proxy_header_length(tvb)
    if start < tvb:len() and verdict_at(tvb, start) > 0 then
      return true
    end
    local place = find(tvb:raw(), '{"code":', 1, true)
    return place and place > PREFIX and verdict_at(tvb, place - 1 - PREFIX) > 0
  end

  rocketmq:register_heuristic("tcp", function(tvb, pinfo, tree)
    if not are_rocketmq(tvb) or dissect(tvb, pinfo, tree) == 0 then
      return false
    end
    pinfo.conversation = rocketmq
    return true
  end)

  -- Within TLS the conversation is that of TLS: it asks again for each piece that it decrypts.
  rocketmq:register_heuristic("tls", function(tvb, pinfo, tree)
    local number = tcp_stream()
    local stream = pairing.stream_of(number and number.value or -1)
    return (stream.known or are_rocketmq(tvb)) and dissect(tvb, pinfo, tree) > 0
  end)

  local ports = DissectorTable.get("tcp.port")
  local registered
  local function register_ports()
    local wanted = tostring(rocketmq.prefs.ports)
    if wanted ~= registered then
      if registered and registered ~= "" then
        ports:remove(registered, rocketmq)
      end
      if wanted ~= "" then
        ports:add(wanted, rocketmq)
      end
      registered = wanted
    end
  end
  rocketmq.prefs_changed = register_ports
  register_ports()
  ports:add_for_decode_as(rocketmq)
end
