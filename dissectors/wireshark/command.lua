-- A command: its members, its ext fields, what answers it, and how a list of packets shows it.
local commands = {}
do
  local format, sub, find = string.format, string.sub, string.find
  local add = messages.add
  local REMARK_LIMIT = 120 -- bytes of a remark in the list of packets

  local function request_name(code)
    return tables.requests[code] or format("UNKNOWN(%d)", code)
  end

  -- The name of a response code, by the request that it answers and the responder's version.
  local function response_name(code, request_code, version)
    local odd = tables.ambiguous_responses[code]
    if odd then
      local by_request = request_code and odd.requests[request_code]
      if by_request then
        return by_request
      end
      for _, range in ipairs(request_code and odd.versions or odd.versions_alone) do
        if range[1] <= version and version <= range[2] then
          return range[3]
        end
      end
    end
    return tables.responses[code] or format("UNKNOWN(%d)", code)
  end

  local function version_name(ordinal)
    local name = tables.versions[ordinal]
    if name then
      return name
    end
    return format(ordinal > 0 and "HIGHER_VERSION(%d)" or "UNKNOWN(%d)", ordinal)
  end

  -- What a number says besides itself; nil where there is nothing to add.
  local function meaning_of(class, name, text)
    local of_class = tables.meanings[class]
    local meaning = of_class and of_class[name] or tables.meanings["*"][name]
    local value = meaning and tonumber(text)
    if not value then
      return nil
    elseif meaning.values and meaning.values[value] then
      return meaning.values[value]
    elseif meaning.kind == "time" then
      return texts.time_of(value)
    elseif meaning.kind == "duration" then
      return texts.duration_of(value)
    elseif meaning.kind == "sys_flag" and value ~= 0 then
      return messages.flags_of(value)
    elseif meaning.bits and value ~= 0 then
      return messages.bits_of(value, meaning.bits)
    end
    return value > 63 and meaning.more or nil
  end

  local function add_properties(view, item, entry, tvb, base)
    -- Within JSON the separators stand escaped, so a property has no place of its own.
    local length = entry.last - entry.first + 1
    local exact = length == #entry.value
    local offset = base + entry.first - 1
    return messages.add_properties(view, item, entry.value, tvb, offset, length, exact)
  end

  local function say_unreadable(view, node, name, value)
    local text = sub(texts.masked(name, value), 1, 40)
    view.say(node, "bad_field", format("%s does not parse: %s", name, text))
  end

  -- Adds one ext field by its long name and typed, as text where it does not parse.
  local function add_ext_field(view, node, class, entry, name, kind, tvb, base)
    local offset, length = base + entry.first - 1, entry.last - entry.first + 1
    local known = ext_fields[name]
    local value = texts.masked(name, entry.value)
    local typed = known and messages.value_of(kind or known.type, value)
    local item
    if typed ~= nil and (not kind or kind == known.type) then
      item = add(view, node, known.field, tvb, offset, length, typed)
      if item and view.visible then
        local meaning = meaning_of(class, name, value)
        if entry.name ~= name then
          item:prepend_text(entry.name .. " ")
        end
        if meaning then
          item:append_text(" (" .. meaning .. ")")
        end
      end
    else
      item = add(view, node, fields.other, tvb, offset, length, texts.shown(name .. "=" .. value))
      if item and view.visible then
        item:set_text(texts.label(name .. ": " .. value))
      end
      if kind then
        say_unreadable(view, item or node, name, value)
      end
    end
    if name == "properties" then
      view.properties = add_properties(view, item or node, entry, tvb, base)
    end
  end

  local function say_missing(view, node, header, layout)
    local missing = {}
    for _, name in ipairs(layout.required) do
      if not header.values[layout.wires[name]] then
        missing[#missing + 1] = name
      end
    end
    -- A response without any of them is an answer without header, as error answers are.
    if not (header.is_response and #missing == #layout.required) then
      for _, name in ipairs(missing) do
        view.say(node, "bad_field", name .. " is missing")
      end
    end
  end

  local NO_LAYOUT = { fields = {}, required = {}, wires = {} }

  -- What is wrong with ext fields that nobody wants to see.
  local function check_ext_fields(view, node, header, layout)
    for _, entry in ipairs(header.ext) do
      local row = layout.fields[entry.name]
      if row and row[2] ~= "string" and messages.value_of(row[2], entry.value) == nil then
        say_unreadable(view, node, row[1], entry.value)
      end
    end
  end

  local function add_ext_fields(view, tree, header, class, tvb, base)
    local layout = class and tables.headers[class] or NO_LAYOUT
    if #layout.required > 0 then
      say_missing(view, tree, header, layout)
    end
    if not view.some then
      return check_ext_fields(view, tree, header, layout)
    end
    local node = tree
    if #header.ext > 0 then
      local first, last = header.ext[1].first, header.ext[#header.ext].last
      node = add(view, tree, fields.ext, tvb, base + first - 1, last - first + 1) or tree
      if view.visible then
        node:set_text(format("Ext fields: %s", class or "of no known class"))
      end
      if class then
        add(view, node, fields.header_name, tvb, base + first - 1, 0, class)
      end
    end
    for _, entry in ipairs(header.ext) do
      local row = layout.fields[entry.name]
      local name, kind = entry.name, nil
      if row then
        name, kind = row[1], row[2]
      end
      add_ext_field(view, node, class or "", entry, name, kind, tvb, base)
    end
  end

  local FLAGS = { [0] = "REQUEST", "RESPONSE", "REQUEST|ONEWAY", "RESPONSE|ONEWAY" }

  local function add_members(view, tree, header, names, tvb, base)
    local firsts, lasts = header.firsts, header.lasts
    local function member(field, name, value)
      local first = firsts[name]
      if first then
        return add(view, tree, fields[field], tvb, base + first - 1, lasts[name] - first + 1, value)
      end
      return add(view, tree, fields[field], tvb, base, 0, value)
    end
    local item = member("kind", "flag", names.kind)
    if item then
      item:set_generated()
    end
    item = member("code", "code", header.code)
    if item and view.visible then
      item:append_text(" (" .. names.name .. ")")
    end
    if header.wire_code and header.wire_code ~= header.code then
      member("wire_code", "code", header.wire_code)
    end
    for _, generated in ipairs({ "name", "operation" }) do
      item = names[generated] and member(generated, "code", names[generated])
      if item then
        item:set_generated()
      end
    end
    member("opaque", "opaque", header.opaque)
    item = member("flag", "flag", header.flag)
    if item and view.visible then
      item:append_text(" (" .. (FLAGS[header.flag] or "?") .. ")")
    end
    member("language", "language", texts.shown(header.language))
    member("version", "version", header.version)
    item = member("version_name", "version", version_name(header.version))
    if item then
      item:set_generated()
    end
    if header.remark then
      member("remark", "remark", texts.shown(texts.remark(header.remark)))
    end
  end

  local function add_pairing(view, tree, tvb, base, header, exchange)
    local function generated(field, value)
      local item = add(view, tree, fields[field], tvb, base, 0, value)
      if item then
        item:set_generated()
      end
    end
    local request, response = exchange.request, exchange.response
    if header.is_response then
      if request then
        generated("request_in", request.frame)
        generated("request_code", request.code)
      end
    elseif response then
      generated("response_in", response.frame)
    end
    if exchange.time and response and request and (header.is_response or view.visited) then
      local whole = math.floor(math.abs(exchange.time) / 1e9)
      local sign = exchange.time < 0 and -1 or 1
      generated("time", NSTime(sign * whole, exchange.time - sign * whole * 1000000000))
    end
  end

  local function say_pairing(view, node, header, exchange)
    if header.is_response then
      if exchange.answers_oneway then
        local text = format("the request in frame %d wants no answer", exchange.answers_oneway)
        view.say(node, "oneway_response", text)
      elseif not exchange.request then
        view.say(node, "no_request", "its request was not captured")
      end
    else
      if exchange.reused then
        local text = "the request in frame %d has the same opaque and no answer"
        view.say(node, "opaque_reused", format(text, exchange.reused))
      end
      if view.visited and exchange.request and not exchange.oneway and not exchange.response then
        view.say(node, "no_response", "no response was captured")
      end
    end
  end

  local function say_code(view, node, header, names)
    if not header.is_response then
      if not tables.requests[header.code] then
        view.say(node, "unknown_code", "request code " .. header.code)
      end
    elseif names.name == format("UNKNOWN(%d)", header.code) then
      view.say(node, "unknown_code", "response code " .. header.code)
    elseif not tables.successes[header.code] then
      local kind = tables.normal_responses[names.name] and "other_response" or "error_response"
      local remark = header.remark and ": " .. sub(texts.remark(header.remark), 1, REMARK_LIMIT) or ""
      view.say(node, kind, names.name .. texts.label(remark))
    end
  end

  local function names_of(header, exchange)
    local request = exchange.request
    local names = {}
    if header.is_response then
      names.kind = "response"
      names.name = response_name(header.code, request and request.code, header.version)
      names.operation = request and request_name(request.code) or nil
    else
      names.kind = header.flag % 4 == 2 and "oneway" or "request"
      names.name = request_name(header.code)
      names.operation = names.name
    end
    return names
  end

  -- The line that a list of packets has for a command.
  local function summary_of(view, header, names, exchange)
    local values, parts = header.values, {}
    if header.is_response then
      parts[1] = format("%s response: %s", names.operation or "Unknown", names.name)
      if view.count_text then
        parts[#parts + 1] = view.count_text
      end
      if exchange.time then
        parts[#parts + 1] = format("%.3f ms", exchange.time / 1e6)
      end
      if header.remark and header.code ~= 0 then
        parts[#parts + 1] = '"' .. sub(texts.remark(header.remark), 1, REMARK_LIMIT) .. '"'
      end
    else
      local letters = tables.short_names[header.code]
      local topic = letters and values[letters.topic] or values.topic
      local queue = letters and values[letters.queueId] or values.queueId
      parts[1] = names.name .. (names.kind == "oneway" and " (oneway)" or "")
      if topic then
        parts[1] = parts[1] .. " " .. topic .. (queue and "[" .. queue .. "]" or "")
      end
      if view.count_text then
        parts[#parts + 1] = view.count_text
      end
    end
    return format("%s #%d", table.concat(parts, ", "), header.opaque)
  end

  -- Adds a whole command to its tree; the line that a list of packets has for it.
  function commands.dissect(view, tree, header, exchange, tvb, base, body)
    header.is_response = header.flag % 2 == 1
    local request_code = header.code
    if header.is_response then
      request_code = exchange.request and exchange.request.code
    end
    local names = names_of(header, exchange)
    local operation = request_code and tables.operations[request_code]
    local class = operation and operation[header.is_response and 2 or 1] or nil
    if view.some then
      add_members(view, tree, header, names, tvb, base)
      add_pairing(view, tree, tvb, base, header, exchange)
    end
    add_ext_fields(view, tree, header, class, tvb, base)
    say_code(view, tree, header, names)
    say_pairing(view, tree, header, exchange)
    if body then
      bodies.dissect(view, tree, body, header, request_code)
    end
    if view.left < 0 then
      tree:append_text(" [not all fields are shown]")
    end
    local summary = summary_of(view, header, names, exchange)
    if view.visible then
      tree:append_text(", " .. texts.label(summary))
    end
    return summary
  end
end
