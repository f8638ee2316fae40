-- Messages: their properties, stored records of both versions, the items of batches.
--
-- `view` is one look at a packet: `visible` (a person or a program sees the whole tree), `some` (at
-- least one field is asked for), `fields` (which ones).
local messages = {}
do
  local find, sub, byte, format = string.find, string.sub, string.byte, string.format

  local function int16_at(text, at)
    local a, b = byte(text, at, at + 1)
    return a * 256 + b
  end

  -- Whether somebody wants to see a field; asked once a packet and field.
  local function is_wanted(view, tree, field)
    local wanted = view.fields[field]
    if wanted == nil then
      wanted = tree:referenced(field)
      view.fields[field] = wanted
    end
    return wanted
  end
  messages.is_wanted = is_wanted

  -- Adds a field if somebody wants it; the new item, or nil.
  function messages.add(view, tree, field, tvb, offset, length, value)
    if not view.visible and (not view.some or not is_wanted(view, tree, field)) then
      return nil
    elseif value == nil then
      return tree:add(field, tvb(offset, length))
    end
    return tree:add(field, tvb(offset, length), value)
  end
  local add = messages.add

  local BOOLEANS = { ["true"] = true, ["false"] = false }
  local READERS = {
    int = function(text)
      local number = find(text, "^[-+]?%d+$") and tonumber(text)
      return number and number >= -0x80000000 and number <= 0x7FFFFFFF and number or nil
    end,
    -- Numbers of 64 bits are more than a number of Lua may hold: they go from text to Int64.
    long = function(text)
      local digits = string.match(text, "^[-+]?0*(%d+)$")
      if not digits or #digits > 19 then
        return nil
      elseif #digits == 19 then
        local most = byte(text) == 45 and "9223372036854775808" or "9223372036854775807"
        if digits > most then
          return nil
        end
      end
      return Int64((string.gsub(text, "^%+", "")))
    end,
    boolean = function(text)
      return BOOLEANS[string.lower(text)]
    end,
    double = function(text)
      return find(text, "^[-+]?[%d.]") and tonumber(text) or nil
    end,
    BoundaryType = function(text)
      local upper = string.upper(text)
      return (upper == "LOWER" or upper == "UPPER") and upper or nil
    end,
    string = texts.shown,
  }

  -- A text as a value of the type that its field has; nil where it does not parse.
  function messages.value_of(kind, text)
    return READERS[kind](text)
  end

  -- Adds the properties that a text spells, `first` being the place of its first byte; what is
  -- in the text cannot be placed exactly where the text stood escaped (`exact` is false).
  function messages.add_properties(view, tree, text, tvb, offset, length, exact)
    local found, at, size = {}, 1, #text
    if not messages.properties_are_wanted(view, tree) then
      return found
    end
    while at <= size do
      local stop = find(text, "\2", at, true) or size + 1
      local middle = find(text, "\1", at, true)
      if middle and middle < stop - 1 and middle > at then
        local name, value = sub(text, at, middle - 1), sub(text, middle + 1, stop - 1)
        found[name] = value
        local from, count = offset, length
        if exact then
          from, count = offset + at - 1, stop - at
        end
        messages.add_property(view, tree, name, value, tvb, from, count)
      end
      at = stop + 1
    end
    return found
  end

  function messages.add_property(view, tree, name, value, tvb, offset, length)
    local known = property_fields[name]
    local typed = known and READERS[known.type](value)
    if typed ~= nil then
      local item = add(view, tree, known.field, tvb, offset, length, typed)
      if item and view.visible and known.meaning == "time" then
        local time = texts.time_of(tonumber(value) or 0)
        item:append_text(time and " (" .. time .. ")" or "")
      end
      return
    end
    local text = texts.shown(name .. "=" .. value)
    local item = add(view, tree, fields.property, tvb, offset, length, text)
    if item and view.visible then
      item:set_text(texts.shown(name .. ": " .. value))
    end
  end

  -- How a body is compressed, by its sysFlag; nil when it is not.
  function messages.compression_of(sys_flag)
    if sys_flag % 2 == 0 then
      return nil
    end
    local bits = math.floor(sys_flag / 0x100) % 8
    return tables.compressions[bits] or format("unknown(0x%03x)", bits * 0x100)
  end

  -- The names of bits that are set, and what is left of the number without them.
  local function named_bits(value, bits)
    local names, rest = {}, value % 0x100000000
    for _, bit in ipairs(bits) do
      if math.floor(value / bit.unit) % bit.span == bit.value then
        names[#names + 1] = bit.name
        rest = rest - bit.value * bit.unit
      end
    end
    return names, rest
  end

  -- Names of bits in one text, unknown ones as one number.
  function messages.bits_of(value, bits)
    local names, rest = named_bits(value, bits)
    if rest > 0 then
      names[#names + 1] = format("0x%x", rest)
    end
    return table.concat(names, "|")
  end

  -- The same of a message's sysFlag; its compression type says something of compressed ones only.
  function messages.flags_of(value)
    local names, rest = named_bits(value, tables.sys_flag_bits)
    rest = rest - math.floor(rest / 0x100) % 8 * 0x100
    local compression = messages.compression_of(value)
    if compression then
      names[#names + 1] = "COMPRESSION_" .. string.upper(compression)
    end
    if rest > 0 then
      names[#names + 1] = format("0x%x", rest)
    end
    return table.concat(names, "|")
  end

  -- The name of the method differs: 4.4 calls it uncompress_zlib, and 4.0 knows no such name.
  local function method_of(range)
    local there, method = pcall(function()
      return range.uncompress_zlib
    end)
    return there and method or range.uncompress
  end

  -- A zlib stream, decompressed by Wireshark: a range, nil for what is none.
  function messages.uncompress(range, name)
    return byte(range:raw(0, 1)) == 0x78 and method_of(range)(range, name) or nil
  end

  -- The body of a message, decompressed where that can be done here: a range, or nil.
  local function decompressed(kind, range)
    if kind == "zlib" then
      return messages.uncompress(range, "Decompressed body")
    elseif kind == "lz4" then
      local data = lz4.decompress(range:raw())
      return data and data ~= "" and ByteArray.new(data, true):tvb("Decompressed body"):range() or nil
    end
    return nil
  end

  -- Adds a message's body: its bytes, how they are compressed, its text. The range of the body as
  -- the application sees it.
  function messages.add_body(view, tree, tvb, offset, length, sys_flag)
    if length <= 0 then
      return nil
    end
    add(view, tree, fields.message_body, tvb, offset, length)
    local range, kind = tvb(offset, length), messages.compression_of(sys_flag)
    local wants_text = view.visible or is_wanted(view, tree, fields.message_text)
    if kind then
      local item = add(view, tree, fields.compression, tvb, offset, length, kind)
      if not wants_text and not view.unwraps then
        return nil
      end
      range = decompressed(kind, range)
      if not range then
        if item then
          item:append_text(" (not decompressed here)")
        end
        return nil
      end
    end
    if wants_text then
      local raw = range:raw()
      if texts.is_text(raw) then
        tree:add(fields.message_text, range, raw)
      end
    end
    return range
  end

  -- The parts that a body of messages is made of: each `at`, `total`, `magic`; and why there are no
  -- more, nil where the body ends. `why_not` says of a size and a magic why they begin no part.
  local function parts_of(range, what, why_not)
    local parts, at, size, odd = {}, 0, range:len(), nil
    local data = range:raw()
    while at < size do
      local left = size - at
      if left < 8 then
        return parts, format("%d bytes are too few for %s", left, what)
      end
      local total, magic = headers.int32_at(data, at + 1), headers.int32_at(data, at + 5) % 0x100000000
      local problem = why_not(total, magic)
      if problem and (magic ~= tables.magic_filler or total < 8) then
        return parts, problem
      elseif total > left then
        return parts, format("%s of %d bytes is cut after %d", what, total, left)
      elseif problem then -- what fills the end of a file is passed over
        odd = problem
      else
        parts[#parts + 1] = { at = at, total = total, magic = magic }
      end
      at = at + total
    end
    return parts, odd
  end

  local function why_no_item(total, magic)
    if magic ~= 0 then
      return format("magic 0x%08x marks no batch item", magic)
    end
    return total < tables.min_item_size and format("size %d is too small for an item", total) or nil
  end

  -- The items of a batch, see `parts_of`.
  function messages.items_of(range)
    return parts_of(range, "an item", why_no_item)
  end

  -- Adds the items of a batch; what is wrong with one of them, nil if nothing is.
  function messages.add_items(view, tree, range, items)
    local tvb, problem = range:tvb(), nil
    for number, item in ipairs(items) do
      problem = messages.add_item(view, tree, tvb, item.at, item.total, number) or problem
    end
    return problem
  end

  function messages.add_item(view, tree, tvb, at, total, number)
    local length = tvb(at + 16, 4):int()
    local properties_at = at + 20 + length
    if length < 0 or 20 + length + 2 > total then
      return format("body length %d does not fit the item", length)
    end
    local properties_length = tvb(properties_at, 2):uint()
    if 20 + length + 2 + properties_length > total then
      return format("properties length %d does not fit the item", properties_length)
    end
    local node = add(view, tree, fields.message, tvb, at, total) or tree
    add(view, node, fields.size, tvb, at, 4)
    add(view, node, fields.body_crc, tvb, at + 8, 4)
    add(view, node, fields.message_flag, tvb, at + 12, 4)
    messages.add_body(view, node, tvb, at + 20, length, 0)
    local found = messages.add_stored_properties(view, node, tvb, properties_at + 2, properties_length)
    if view.visible then
      node:set_text(format("Message %s%s", number or "", found.UNIQ_KEY and ": " .. found.UNIQ_KEY or ""))
    end
    return nil
  end

  function messages.add_stored_properties(view, tree, tvb, offset, length)
    if length == 0 or not messages.properties_are_wanted(view, tree) then
      return {}
    end
    local node = add(view, tree, fields.properties, tvb, offset, length) or tree
    return messages.add_properties(view, node, tvb:raw(offset, length), tvb, offset, length, true)
  end

  local function add_time(view, tree, field, tvb, at)
    if view.visible or is_wanted(view, tree, field) then
      local high, low = tvb(at, 4):int(), tvb(at + 4, 4):uint()
      local milliseconds = high * 0x100000000 + low
      local seconds = math.floor(milliseconds / 1000)
      if seconds < -0x80000000 or seconds > 0x7FFFFFFFFF then
        seconds, milliseconds = 0, 0
      end
      tree:add(field, tvb(at, 8), NSTime(seconds, math.floor(milliseconds - seconds * 1000) * 1000000))
    end
  end

  local function add_host(view, tree, field, tvb, at, width)
    if view.visible or is_wanted(view, tree, field) then
      local address = width == 16 and tvb(at, 16):ipv6() or tvb(at, 4):ipv4()
      local text = width == 16 and "[%s]:%d" or "%s:%d"
      local port = tvb(at + width, 4):int()
      tree:add(field, tvb(at, width + 4), format(text, tostring(address), port))
    end
    return at + width + 4
  end

  -- Adds one stored record of `total` bytes, all of them there; why it is odd, nil if it is not.
  local function add_record(view, tree, tvb, at, total, number)
    local sys_flag = tvb(at + 36, 4):int()
    local born = math.floor(sys_flag / 0x10) % 2 == 1 and 16 or 4
    local store = math.floor(sys_flag / 0x20) % 2 == 1 and 16 or 4
    local stop, fixed = at + total, 80 + born + store
    if total < fixed then
      return "the record ends inside its fixed part"
    end
    local node = add(view, tree, fields.message, tvb, at, total) or tree
    add(view, node, fields.size, tvb, at, 4)
    add(view, node, fields.magic, tvb, at + 4, 4)
    add(view, node, fields.body_crc, tvb, at + 8, 4)
    add(view, node, fields.queue_id, tvb, at + 12, 4)
    add(view, node, fields.message_flag, tvb, at + 16, 4)
    add(view, node, fields.queue_offset, tvb, at + 20, 8)
    add(view, node, fields.physical_offset, tvb, at + 28, 8)
    local item = add(view, node, fields.sys_flag, tvb, at + 36, 4)
    if item and view.visible and sys_flag ~= 0 then
      item:append_text(" (" .. messages.flags_of(sys_flag) .. ")")
    end
    add_time(view, node, fields.born_time, tvb, at + 40)
    local next = add_host(view, node, fields.born_host, tvb, at + 48, born)
    add_time(view, node, fields.store_time, tvb, next)
    next = add_host(view, node, fields.store_host, tvb, next + 8, store)
    add(view, node, fields.reconsume_times, tvb, next, 4)
    add(view, node, fields.prepared_offset, tvb, next + 4, 8)
    return messages.add_tail(view, node, tvb, next + 12, stop, sys_flag, number)
  end

  -- Body, topic and properties of a record, from its body length on.
  function messages.add_tail(view, node, tvb, at, stop, sys_flag, number)
    local length = tvb(at, 4):int()
    local width = view.topic_width
    local topic_at = at + 4 + length
    if length < 0 or topic_at + width > stop then
      return format("body length %d does not fit the record", length)
    end
    local topic_length = tvb(topic_at, width):uint()
    local properties_at = topic_at + width + topic_length
    if properties_at + 2 > stop then
      return format("topic length %d does not fit the record", topic_length)
    end
    local properties_length = tvb(properties_at, 2):uint()
    if properties_at + 2 + properties_length > stop then
      return format("properties length %d does not fit the record", properties_length)
    end
    local inner = math.floor(sys_flag / 0x40) % 4 == 3
    view.unwraps = inner
    local body = messages.add_body(view, node, tvb, at + 4, length, sys_flag)
    local topic = texts.shown(tvb:raw(topic_at + width, topic_length))
    add(view, node, fields.message_topic, tvb, topic_at + width, topic_length, topic)
    local found =
      messages.add_stored_properties(view, node, tvb, properties_at + 2, properties_length)
    if inner and body then
      messages.add_items(view, node, body, messages.items_of(body))
    end
    if view.visible then
      node:set_text(format("Message %d: %s %s", number, topic, found.UNIQ_KEY or ""))
    end
    local left = stop - properties_at - 2 - properties_length
    return left > 0 and format("%d bytes follow the properties inside the record", left) or nil
  end

  local function why_no_record(total, magic)
    if magic == tables.magic_filler and total >= 8 then
      return format("file end filler of %d bytes", total)
    elseif not tables.magics[magic] then
      return format("magic 0x%08x marks no message", magic)
    end
    return total < tables.min_record_size and format("size %d is too small for a record", total) or nil
  end

  -- The stored records of a body, see `parts_of`.
  function messages.records_of(range)
    return parts_of(range, "a record", why_no_record)
  end

  -- Adds the records of a body; what is wrong with one of them, nil if nothing is.
  function messages.add_records(view, tree, range, records)
    local tvb, problem = range:tvb(), nil
    for number, record in ipairs(records) do
      view.topic_width = record.magic == tables.magic_v2 and 2 or 1
      problem = add_record(view, tree, tvb, record.at, record.total, number) or problem
    end
    return problem
  end

  local WANTED = {
    "message", "properties", "property", "size", "magic", "body_crc", "queue_id", "message_flag",
    "queue_offset", "physical_offset", "sys_flag", "born_time", "born_host", "store_time",
    "store_host", "reconsume_times", "prepared_offset", "message_body", "message_text",
    "compression", "message_topic",
  }

  -- Whether somebody wants to see anything of messages.
  function messages.are_wanted(view, tree)
    if view.visible or not view.some then
      return view.visible
    end
    for _, name in ipairs(WANTED) do
      if is_wanted(view, tree, fields[name]) then
        return true
      end
    end
    return messages.properties_are_wanted(view, tree)
  end

  function messages.properties_are_wanted(view, tree)
    if view.visible or not view.some then
      return view.visible
    elseif view.properties_wanted == nil then
      local wanted = is_wanted(view, tree, fields.property)
      for _, known in pairs(property_fields) do
        wanted = wanted or is_wanted(view, tree, known.field)
      end
      view.properties_wanted = wanted
    end
    return view.properties_wanted
  end
end
