-- Messages: what is wanted of them, values with their types, properties, flags, bodies.
--
-- `view` is one look at a frame: `visible` (a person or a program sees the whole tree), `some` (at
-- least one field is asked for), `fields` (which ones), `left` (how many more may be shown).
local messages = {}
do
  local find, sub, byte, format = string.find, string.sub, string.byte, string.format

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
    end
    view.left = view.left - 1
    if view.left < 0 then
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

  -- Adds the properties that a text spells; what is in it has no place of its own where the text
  -- stood escaped (`exact` is false). The properties by name, empty where nobody wants them.
  function messages.add_properties(view, tree, text, tvb, offset, length, exact)
    local found, at, size, middle = {}, 1, #text, 0
    if not messages.properties_are_wanted(view, tree) then
      return found
    end
    while at <= size do
      local stop = find(text, "\2", at, true) or size + 1
      if middle < at then
        middle = find(text, "\1", at, true)
        if not middle then
          break
        end
      end
      if middle < stop - 1 and middle > at then
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
      item:set_text(texts.label(name .. ": " .. value))
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
      if data and data ~= "" then
        return ByteArray.new(data, true):tvb("Decompressed body"):range()
      end
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
