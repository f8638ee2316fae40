-- Texts: JSON as fastjson writes and reads it, and how values are shown.
--
-- One pass over a text, bounded in depth and in the number of values. A value is a node: `kind` is
-- `{`, `[`, `"`, `n` (number) or `w` (word), `first` and `last` are its place in the text, counted
-- from 1, and what it says is in `text`, `items` or `members` (each with `key` and `value`).
local json, texts = {}, {}
do
  local find, match, sub, gsub = string.find, string.match, string.sub, string.gsub
  local byte, char, floor = string.byte, string.char, math.floor

  local DEPTH_LIMIT = 64 -- fifteen is the most that RocketMQ's own bodies have
  local SHORT = { b = "\b", t = "\t", n = "\n", v = "\11", f = "\f", F = "\f", r = "\r" }
  local INNER_LIMIT = 2000 -- characters of a value whose members may be secrets
  local SHORT_DIGITS = "[0-7]"
  local WORDS = { ["null"] = true, undefined = true, NaN = true, ["true"] = true, ["false"] = true }
  local TOKEN = "^[%w_$%%@.+%-\128-\255][%w_$.%-@%%+|\128-\255]*"

  local function utf8_of(code)
    if code < 0x80 then
      return char(code)
    elseif code < 0x800 then
      return char(0xC0 + floor(code / 0x40), 0x80 + code % 0x40)
    elseif code < 0x10000 then
      return char(0xE0 + floor(code / 0x1000), 0x80 + floor(code / 0x40) % 0x40, 0x80 + code % 0x40)
    end
    return char(
      0xF0 + floor(code / 0x40000),
      0x80 + floor(code / 0x1000) % 0x40,
      0x80 + floor(code / 0x40) % 0x40,
      0x80 + code % 0x40
    )
  end

  local function unescaped(letter, digits)
    if letter == "u" then
      if #digits == 4 then
        return utf8_of(tonumber(digits, 16))
      end
    elseif letter == "x" then
      if #digits >= 2 then
        return utf8_of(tonumber(sub(digits, 1, 2), 16)) .. sub(digits, 3)
      end
    elseif find(letter, SHORT_DIGITS) then
      return char(tonumber(letter)) .. digits
    end
    return (SHORT[letter] or letter) .. digits
  end

  -- Both halves of a surrogate pair, each as three bytes, are one character.
  local function joined(high, low)
    local a, b = byte(high, 2, 3)
    local c, d = byte(low, 2, 3)
    local upper = (a - 0xA0) * 0x40 + b - 0x80
    local lower = (c - 0xB0) * 0x40 + d - 0x80
    return utf8_of(0x10000 + upper * 0x400 + lower)
  end

  -- What the text between two quotes means.
  function json.unescape(text)
    if not find(text, "\\\\", 1, true) then -- the usual case: the separators of properties
      text = gsub(gsub(text, "\\u0001", "\1"), "\\u0002", "\2")
      if not find(text, "\\", 1, true) then
        return text
      end
    end
    text = gsub(text, "\\(.)(%x?%x?%x?%x?)", unescaped)
    if find(text, "\237[\160-\191]") then
      text = gsub(text, "(\237[\160-\175][\128-\191])(\237[\176-\191][\128-\191])", joined)
      text = gsub(text, "\237[\160-\191][\128-\191]", "\239\191\189")
    end
    return text
  end

  -- The one reading that goes on; readings do not nest.
  local text, at, left, problem

  local function stop(reason)
    problem = problem or (reason .. " at " .. (at - 1))
    return nil
  end

  -- Moves past blanks, comments and, if wanted, commas; the byte that comes next, nil at the end.
  local function skip(blanks)
    local code = byte(text, at)
    while code and (code <= 32 or code == 44 or code == 47 or code == 0xEF) do
      local _, last = find(text, blanks, at)
      at = last + 1
      code = byte(text, at)
      if code == 0xEF and sub(text, at, at + 2) == "\239\187\191" then
        at = at + 3
      elseif code == 47 then
        local kind = sub(text, at, at + 1)
        local _, past = nil, nil
        if kind == "/*" then
          _, past = find(text, "*/", at + 2, true)
        elseif kind == "//" then
          _, past = find(text, "\n", at, true)
          past = past or #text
        end
        if not past then
          return code
        end
        at = past + 1
      else
        return code
      end
      code = byte(text, at)
    end
    return code
  end
  local BLANKS, BLANKS_AND_COMMAS = "^[%s\8]*", "^[%s,\8]*"

  local function read_string(quote)
    local first, from = at, at + 1
    local pattern = quote == 34 and '["\\]' or "['\\]"
    local escaped = false
    while true do
      local place = find(text, pattern, from)
      if not place then
        return stop("the text ends inside a string")
      elseif byte(text, place) == 92 then
        escaped = true
        from = place + 2
      else
        at = place + 1
        local content = sub(text, first + 1, place - 1)
        if escaped then
          content = json.unescape(content)
        end
        return { kind = '"', text = content, first = first, last = place }
      end
    end
  end

  local function is_number(token)
    token = gsub(token, "[LSBFDlsbfd]$", "")
    local digits = match(token, "^[-+]?(.-)[eE][-+]?%d+$") or match(token, "^[-+]?(.*)$")
    return find(digits, "^%d+%.?%d*$") or find(digits, "^%.%d+$")
  end

  local read_value

  local function read_token(depth)
    local first = at
    local token = match(text, TOKEN, at)
    if not token then
      return stop("unexpected character")
    elseif is_number(token) then
      at = at + #token
      if at > #text and depth > 0 then
        return stop("the text ends after a number that may be cut")
      end
      token = gsub(token, "[LSBFDlsbfd]$", "")
      return { kind = "n", text = token, first = first, last = at - 1 }
    elseif WORDS[token] then
      at = at + #token
      return { kind = "w", text = token, first = first, last = at - 1 }
    elseif (token == "Set" or token == "TreeSet") and byte(text, at + #token) == 91 then
      at = at + #token
      return read_value(depth)
    end
    return stop("unexpected word")
  end

  local function read_key(depth)
    local code = byte(text, at)
    if code == 34 or code == 39 then
      return read_string(code)
    elseif code == 123 or code == 91 then
      return read_value(depth)
    end
    local token = match(text, TOKEN, at)
    if not token then
      return stop(code and "unexpected character" or "the text ends")
    end
    at = at + #token
    return { kind = '"', text = token, first = at - #token, last = at - 1 }
  end

  local function read_object(depth)
    local members, first, count = {}, at - 1, 0
    while not problem do
      if skip(BLANKS_AND_COMMAS) == 125 then
        at = at + 1
        break
      end
      local key = read_key(depth)
      if problem then
        break
      end
      if skip(BLANKS) ~= 58 then
        stop("no : after a name")
        break
      end
      at = at + 1
      local value = read_value(depth)
      if value then
        count = count + 1
        members[count] = { key = key, value = value }
      end
      if not problem then
        local code = skip(BLANKS)
        if code ~= 44 and code ~= 125 then
          stop("no comma or } after a member")
        end
      end
    end
    return { kind = "{", members = members, first = first, last = at - 1 }
  end

  local function read_array(depth)
    local items, first, count = {}, at - 1, 0
    while not problem do
      if skip(BLANKS_AND_COMMAS) == 93 then
        at = at + 1
        break
      end
      local item = read_value(depth)
      if item then
        count = count + 1
        items[count] = item
      end
      if not problem then
        local code = skip(BLANKS)
        if code ~= 44 and code ~= 93 then
          stop("no comma or ] after an item")
        end
      end
    end
    return { kind = "[", items = items, first = first, last = at - 1 }
  end

  function read_value(depth)
    local code = skip(BLANKS)
    left = left - 1
    if left < 0 then
      return stop("too many values")
    elseif code == 34 or code == 39 then
      return read_string(code)
    elseif code == 123 or code == 91 then
      if depth >= DEPTH_LIMIT then
        return stop("too many levels")
      end
      at = at + 1
      if code == 123 then
        return read_object(depth + 1)
      end
      return read_array(depth + 1)
    elseif not code then
      return stop("the text ends")
    end
    return read_token(depth)
  end

  -- The node that a text begins with, and what is wrong with the text, nil when nothing is.
  function json.read(input, limit)
    text, at, left, problem = input, 1, limit, nil
    local node = read_value(0)
    if not problem then
      skip(BLANKS)
      if at <= #text then
        stop("more follows the value")
      end
    end
    text = ""
    return node, problem
  end

  -- The string that RocketMQ's reader makes of a value; nil for null.
  function json.string_of(node, input)
    if node.kind == "{" or node.kind == "[" then
      return sub(input, node.first, node.last)
    elseif node.kind == "w" and node.text ~= "true" and node.text ~= "false" then
      return nil
    end
    return node.text
  end

  -- A text that a tree can show: Wireshark ends a string at its first zero byte.
  function texts.shown(value)
    if find(value, "\0", 1, true) then
      value = gsub(value, "%\0", "\226\144\128")
    end
    return value
  end

  local function escaped(one)
    local first, second, third, fourth = byte(one, 1, 4)
    local code = (first % 32) * 64 + second % 64
    if fourth then
      code = ((first % 8 * 64 + second % 64) * 64 + third % 64) * 64 + fourth % 64
    elseif third then
      code = ((first % 16) * 64 + second % 64) * 64 + third % 64
    end
    return string.format(fourth and "\\U%08x" or "\\u%04x", code)
  end

  -- The same for labels and columns, where nobody filters: characters that turn a line round or
  -- are not seen (direction marks, joiners, tags) are shown as what they are.
  function texts.label(value)
    value = texts.shown(value)
    if not find(value, "[\194\216\225\226\239\243]") then
      return value
    end
    value = gsub(value, "\194\173", escaped) -- U+00AD
    value = gsub(value, "\216\156", escaped) -- U+061C
    value = gsub(value, "\225\160\142", escaped) -- U+180E
    value = gsub(value, "\226\128[\139-\143\168-\174]", escaped) -- U+200B-200F, 2028-202E
    value = gsub(value, "\226\129[\160-\175]", escaped) -- U+2060-206F
    value = gsub(value, "\239\187\191", escaped) -- U+FEFF
    value = gsub(value, "\243\160[\128\129][\128-\191]", escaped) -- tags
    return value
  end

  -- Whether bytes are a text for people; records of message traces have bytes 1 and 2 in them.
  function texts.is_text(value)
    return not find(value, "[\0\3-\8\11\12\14-\31\127]") and not find(value, "[\192\193\245-\255]")
  end

  -- How many characters of a secret may be shown by the name of its field or member, in whatever
  -- case that is written; nil if it is none.
  local function letters_of(name)
    local lower = gsub(string.lower(name), "[-_]", "")
    for _, word in ipairs(tables.secret_words) do
      if find(lower, word, 1, true) then
        return 0
      end
    end
    return tables.secrets[string.match(lower, "[^.]*$")]
  end

  function texts.is_secret(name)
    return letters_of(name) ~= nil
  end

  local function mask(letters, value)
    return value == "" and "" or sub(value, 1, math.min(letters, floor(#value / 3))) .. "***"
  end

  -- The last position of a value: before its quote, which has backslashes in a JSON text within a
  -- JSON text; without quotes, that of the line or the word.
  local function value_end(text, at, slashes, quote, is_line)
    if quote == "" and find(text, "^[{%[]", at) then
      local depth, place = 0, at
      repeat -- strings may have brackets of their own
        local _, last, what = find(text, "([%[%]{}\"])", place)
        if not last then
          return #text
        elseif what == '"' then
          last = value_end(text, last + 1, "", '"', false) + 1
        else
          depth = depth + (find(what, "[{%[]") and 1 or -1)
        end
        place = last + 1
      until depth == 0
      return place - 1
    elseif quote == "" then
      local _, last = find(text, is_line and "^[^\n]*" or "^[^\"'%s,;&}%]]*", at)
      return last
    end
    local place = at
    while true do
      local first, last, run = find(text, "(\\*)" .. quote, place)
      if not first then
        return #text
      elseif slashes == "" and #run % 2 == 0 then
        return last - 1
      elseif slashes ~= "" and run == slashes then
        return first - 1
      end
      place = last + 1
    end
  end

  -- The same text with the secrets masked that it has as members: a broker's configuration has JSON
  -- as values. What is longer than INNER_LIMIT is cut, because the search is quadratic in names.
  local function without_inner(value)
    if find(value, "://", 1, true) then -- the password in http://user:password@host
      value = gsub(value, "(://[^%s/:@\"']+:)[^%s/@\"']+@", "%1***@")
    end
    local lower, found = gsub(string.lower(value), "[-_]", ""), false
    for _, word in ipairs(tables.secret_words) do
      found = found or find(lower, word, 1, true)
    end
    for word in pairs(tables.secrets) do
      found = found or find(lower, word, 1, true)
    end
    if not found then
      return value
    end
    local text, parts, at = sub(value, 1, INNER_LIMIT), {}, 1
    local member = "([%w_.$-]+)\\*[\"']?%s*[:=][ \t]*()(\\*)([\"']?)()"
    while true do
      local first, _, name, inner, slashes, quote, start = find(text, member, at)
      if not first then
        break
      end
      local letters = letters_of(name)
      if letters then
        local before = first - 1
        while find(text, "^[ \t-]", before) and before > 0 do
          before = before - 1
        end
        local is_line = (before == 0 or sub(text, before, before) == "\n")
          and not find(text, "^[{%[]", inner)
        if quote == "" then
          start = inner
        end
        local last = value_end(text, start, slashes, quote, is_line)
        parts[#parts + 1] = sub(text, at, start - 1) .. mask(letters, sub(text, start, last))
        at = last + 1
      else -- what follows another name is searched: it may hold names itself
        parts[#parts + 1] = sub(text, at, inner - 1)
        at = inner
      end
    end
    text = table.concat(parts) .. sub(text, at)
    return #value > INNER_LIMIT and text .. "…" or text
  end

  -- The value of a field or member as it may be shown: that of a secret masked.
  function texts.masked(name, value)
    local letters = letters_of(name)
    if letters then
      return mask(letters, value)
    end
    return without_inner(value)
  end

  -- A remark as it may be shown: ACL 1.0 repeats a secret key that is too short.
  function texts.remark(value)
    local lower, parts, at = string.lower(value), {}, 1
    while true do
      local _, equals = find(lower, "secret_?key=", at)
      if not equals then
        return table.concat(parts) .. sub(value, at)
      end
      local said = find(sub(lower, equals, equals + 270), " cannot be null", 1, true)
      parts[#parts + 1] = sub(value, at, equals) .. "***"
      at = said and equals + said - 1 or find(value, "[,;\n]", equals) or #value + 1
    end
  end

  -- Milliseconds since the epoch as UTC; nil where it is not a time.
  function texts.time_of(milliseconds)
    if milliseconds <= 0 or milliseconds > 253402300799999 then
      return nil
    end
    local seconds = floor(milliseconds / 1000)
    local text = os.date("!%Y-%m-%dT%H:%M:%S", seconds)
    return string.format("%s.%03dZ", text, floor(milliseconds - seconds * 1000))
  end

  -- A duration as people say it; nil below a second, where milliseconds say it best.
  function texts.duration_of(milliseconds)
    if milliseconds < 1000 then
      return nil
    end
    local parts = {}
    local seconds = floor(milliseconds / 1000)
    for _, unit in ipairs({ { "d", 86400 }, { "h", 3600 }, { "m", 60 }, { "s", 1 } }) do
      local count = floor(seconds / unit[2])
      seconds = seconds - count * unit[2]
      if count > 0 then
        parts[#parts + 1] = string.format("%d%s", count, unit[1])
      end
    end
    local rest = floor(milliseconds % 1000)
    if rest > 0 then
      parts[#parts + 1] = string.format("%dms", rest)
    end
    return table.concat(parts, " ")
  end
end
