-- Headers, in both serializations: what they say, and where in the header it stands.
--
-- A header is a table: code, opaque, flag, language, version, remark, `firsts` and `lasts` (name:
-- first and last byte, counted from 1), `ext` (a list of name, value, first, last) and `values`
-- (name: value; of names that occur twice the last one counts, as it does for RocketMQ).
local headers = {}
do
  local byte, sub, find, match = string.byte, string.sub, string.find, string.match
  local floor = math.floor

  local function int32_at(text, at)
    local a, b, c, d = byte(text, at, at + 3)
    local number = ((a * 256 + b) * 256 + c) * 256 + d
    return a >= 128 and number - 0x100000000 or number
  end
  headers.int32_at = int32_at

  local function int16_at(text, at)
    local a, b = byte(text, at, at + 1)
    local number = a * 256 + b
    return a >= 128 and number - 0x10000 or number
  end

  -- A 32-bit integer; RocketMQ's reader cuts what is larger, so nothing is kept of it.
  local function int32_of(node)
    if not node then
      return 0
    elseif node.kind == "w" then
      return node.text == "true" and 1 or 0
    end
    local number = node.text and tonumber(node.text) or 0
    number = number >= 0 and floor(number) or -floor(-number)
    if number ~= number or number < -0x80000000 or number > 0x7FFFFFFF then
      return 0
    end
    return number
  end

  local function language_of(node)
    if not node then
      return ""
    elseif node.kind == "n" then
      local number = tonumber(node.text)
      return tables.languages[number] or ("UNKNOWN(" .. node.text .. ")")
    end
    return node.kind == '"' and node.text or ""
  end

  -- Members and the types that they have where nothing is odd.
  local COMPACT = {
    code = "number", opaque = "number", flag = "number", version = "number", language = "string",
    remark = "string",
  }
  local MEMBERS = {
    code = true, opaque = true, flag = true, version = true, language = true, remark = true,
    extFields = true,
  }

  local function read_ext(node, raw, header)
    for _, member in ipairs(node.members or {}) do
      local value = json.string_of(member.value, raw)
      if value then
        local name = member.key.text or "?"
        header.ext[#header.ext + 1] =
          { name = name, value = value, first = member.value.first, last = member.value.last }
        header.values[name] = value
      end
    end
  end

  -- The place of the quote that ends a string, and whether the string has escapes.
  local function string_end(raw, from)
    local stop = find(raw, '["\\]', from)
    if not stop or byte(raw, stop) == 34 then
      return stop, false
    end
    repeat
      stop = find(raw, '["\\]', stop + 2)
    until not stop or byte(raw, stop) == 34
    return stop, true
  end

  -- The string that begins with the quote at `at`: its value and its last byte, nil if it is cut.
  local function string_at(raw, at)
    local stop, escaped = string_end(raw, at + 1)
    if not stop then
      return nil
    end
    local value = sub(raw, at + 1, stop - 1)
    return escaped and json.unescape(value) or value, stop
  end

  -- Ext fields written without blanks; the place behind them, nil where they are written otherwise.
  local function read_compact_ext(raw, at, header)
    if byte(raw, at) == 125 then
      return at + 1
    end
    local ext, values, count = header.ext, header.values, #header.ext
    while true do
      local name, first, value, last = match(raw, '^"([^"\\]*)":()"([^"\\]*)()"', at)
      if not name then
        name, first = match(raw, '^"([^"\\]*)":()"', at)
        if name then
          value, last = string_at(raw, first)
        end
        if not value then
          return nil
        end
      end
      count = count + 1
      ext[count] = { name = name, value = value, first = first, last = last }
      values[name] = value
      local after = byte(raw, last + 1)
      at = last + 2
      if after == 125 then
        return at
      elseif after ~= 44 then
        return nil
      end
    end
  end

  -- A header without blanks, as Java writes it; nil where it is written otherwise.
  local function read_compact(raw)
    local firsts, lasts, ext, values = {}, {}, {}, {}
    local header = {
      flag = 0,
      version = 0,
      language = "",
      firsts = firsts,
      lasts = lasts,
      ext = ext,
      values = values,
    }
    local at, size = 2, #raw
    while true do
      local name, first = match(raw, '^"(%a+)":()', at)
      if not name then
        return nil
      end
      local past, value
      local code = byte(raw, first)
      if code == 34 then
        value, past = string_at(raw, first)
        if not value then
          return nil
        end
        past = past + 1
      elseif code == 123 and name == "extFields" then
        past = read_compact_ext(raw, first + 1, header)
      else
        value, past = match(raw, "^(%-?%d+)()", first)
        value = value and tonumber(value)
        if not value or value < -0x80000000 or value > 0x7FFFFFFF then
          return nil
        end
      end
      local wanted = COMPACT[name]
      if not past or (wanted and type(value) ~= wanted) then
        return nil
      elseif wanted then
        header[name], firsts[name], lasts[name] = value, first, past - 1
      end
      local after = byte(raw, past)
      if after == 44 then
        at = past + 1
      elseif after == 125 and past == size then
        return header.code and header.opaque and header or nil
      else
        return nil
      end
    end
  end

  local function read_json(raw)
    local compact = byte(raw, 1) == 123 and read_compact(raw)
    if compact then
      return compact
    end
    local root, problem = json.read(raw, 65536)
    if problem or not root or root.kind ~= "{" then
      return nil
    end
    local found = {}
    for _, member in ipairs(root.members) do
      if member.key.kind ~= '"' then
        return nil
      elseif MEMBERS[member.key.text] then
        found[member.key.text] = member.value
      end
    end
    if not found.code and not found.opaque then
      return nil
    end
    local header = {
      code = int32_of(found.code),
      opaque = int32_of(found.opaque),
      flag = int32_of(found.flag),
      version = int32_of(found.version),
      language = language_of(found.language),
      remark = found.remark and json.string_of(found.remark, raw),
      firsts = {},
      lasts = {},
      ext = {},
      values = {},
    }
    for name, node in pairs(found) do
      header.firsts[name], header.lasts[name] = node.first, node.last
    end
    if found.extFields then
      read_ext(found.extFields, raw, header)
    end
    return header
  end

  -- Reads key length, key, value length, value until the end; false where they do not fit.
  local function read_entries(raw, at, header)
    local size, count = #raw, 0
    while at <= size do
      if size - at + 1 < 6 then
        return false
      end
      local key_length = int16_at(raw, at)
      local key_end = at + 2 + key_length
      if key_length < 0 or key_end + 3 > size then
        return false
      end
      local length = int32_at(raw, key_end)
      local first = key_end + 4
      if length < 0 or first + length - 1 > size then
        return false
      end
      local name, value = sub(raw, at + 2, key_end - 1), sub(raw, first, first + length - 1)
      count = count + 1
      header.ext[count] = { name = name, value = value, first = first, last = first + length - 1 }
      header.values[name] = value
      at = first + length
    end
    return true
  end

  local FIRSTS = { code = 1, language = 3, version = 4, opaque = 6, flag = 10, remark = 18 }
  local LASTS = { code = 2, language = 3, version = 5, opaque = 9, flag = 13 }

  local function read_binary(raw)
    local size = #raw
    if size < tables.min_binary_header then
      return nil
    end
    local remark_length = int32_at(raw, 14)
    if remark_length < 0 or remark_length > size - tables.min_binary_header then
      return nil
    end
    local at = 18 + remark_length
    local ext_length = int32_at(raw, at)
    if ext_length < 0 or ext_length > size - at - 3 then
      return nil
    end
    local wire, flag = int16_at(raw, 1), int32_at(raw, 10)
    local language = byte(raw, 3)
    local header = {
      code = flag % 2 == 0 and tables.wide_codes[wire] or wire,
      wire_code = wire,
      opaque = int32_at(raw, 6),
      flag = flag,
      version = int16_at(raw, 4),
      language = tables.languages[language] or string.format("UNKNOWN(%d)", language),
      firsts = FIRSTS,
      lasts = LASTS,
      ext = {},
      values = {},
    }
    if remark_length > 0 then
      header.remark = sub(raw, 18, 17 + remark_length)
      header.lasts = setmetatable({ remark = 17 + remark_length }, { __index = LASTS })
    end
    if ext_length > 0 and not read_entries(sub(raw, 1, at + 3 + ext_length), at + 4, header) then
      return nil
    end
    return header
  end

  -- What the bytes of a header say, nil where they are none.
  function headers.read(serialize_type, raw)
    if serialize_type == tables.binary_type then
      return read_binary(raw)
    end
    return read_json(raw)
  end

  -- Whether bytes are certainly a header of `length` bytes, or the beginning of one.
  function headers.is_certain(serialize_type, raw, length)
    local whole = #raw == length
    if serialize_type == tables.binary_type then
      if #raw < 17 then
        return not whole
      end
      local flag, remark_length = int32_at(raw, 10), int32_at(raw, 14)
      local most = length - tables.min_binary_header
      if flag < 0 or flag > 3 or remark_length < 0 or remark_length > most then
        return false
      end
      return not whole or read_binary(raw) ~= nil
    elseif not string.find(raw, '^{%s*["\']?%a') then
      return #raw < 3 and sub(raw, 1, 1) == "{" and not whole
    elseif not whole then
      return true
    end
    local header = read_json(raw)
    return header ~= nil and header.flag >= 0 and header.flag <= 3
  end
end
