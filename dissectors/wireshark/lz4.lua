-- LZ4 frames, decompressed in Lua: Wireshark does it for zlib only.
local lz4 = {}
do
  local byte, char, concat, floor = string.byte, string.char, table.concat, math.floor
  local OUTPUT_LIMIT = 1024 * 1024 -- bytes; every one of them is an entry of a table for a moment
  local SLICE = 4096
  local unpacked = table.unpack or unpack -- the name differs between releases of Lua

  local function uint32_at(data, at)
    local a, b, c, d = byte(data, at, at + 3)
    return a + b * 0x100 + c * 0x10000 + d * 0x1000000
  end

  -- The length that a nibble begins, and the place behind it; nil where the data ends before.
  local function length_at(data, at, last, nibble)
    local length = nibble
    if nibble == 15 then
      repeat
        if at > last then
          return nil
        end
        local more = byte(data, at)
        length, at = length + more, at + 1
      until more < 255
    end
    return length, at
  end

  local function copy_literals(data, at, length, out, size)
    for from = at, at + length - 1, SLICE do
      local to = math.min(from + SLICE, at + length) - 1
      local part = { byte(data, from, to) }
      for index = 1, #part do
        out[size + index] = part[index]
      end
      size = size + #part
    end
    return size
  end

  -- Appends a block to `out`; the new size, nil where the block makes no sense.
  local function read_block(data, at, last, out, size)
    while at <= last do
      local token = byte(data, at)
      local length, offset
      length, at = length_at(data, at + 1, last, floor(token / 16))
      if not length or at + length - 1 > last or size + length > OUTPUT_LIMIT then
        return nil
      end
      size = copy_literals(data, at, length, out, size)
      at = at + length
      if at > last then
        return size
      elseif at + 1 > last then
        return nil
      end
      offset = byte(data, at) + byte(data, at + 1) * 256
      length, at = length_at(data, at + 2, last, token % 16)
      if not length or offset == 0 or offset > size or size + length + 4 > OUTPUT_LIMIT then
        return nil
      end
      for index = size + 1, size + length + 4 do
        out[index] = out[index - offset]
      end
      size = size + length + 4
    end
    return size
  end

  local function text_of(out, size)
    local parts = {}
    for from = 1, size, SLICE do
      parts[#parts + 1] = char(unpacked(out, from, math.min(from + SLICE - 1, size)))
    end
    return concat(parts)
  end

  -- What a frame holds; nil where it is not a whole frame or is too large.
  function lz4.decompress(data)
    if #data < 11 or uint32_at(data, 1) ~= 0x184D2204 then
      return nil
    end
    local flags = byte(data, 5)
    local at = 7 + (floor(flags / 8) % 2) * 8 + (flags % 2) * 4 + 1
    local block_checksum = floor(flags / 16) % 2 * 4
    local out, size = {}, 0
    while at + 3 <= #data do
      local length = uint32_at(data, at)
      at = at + 4
      if length == 0 then
        return text_of(out, size)
      end
      local plain = length >= 0x80000000
      length = length % 0x80000000
      local last = at + length - 1
      if last > #data or size + (plain and length or 0) > OUTPUT_LIMIT then
        return nil
      elseif plain then
        size = copy_literals(data, at, length, out, size)
      else
        size = read_block(data, at, last, out, size)
      end
      if not size then
        return nil
      end
      at = last + 1 + block_checksum
    end
    return nil
  end
end
