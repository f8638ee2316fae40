-- Bodies: which one a command has, and its tree.
local bodies = {}
do
  local find, sub, byte = string.find, string.sub, string.byte
  local format, gsub = string.format, string.gsub
  local add = messages.add
  local TEXT_LIMIT = 65536 -- bytes of a text that are shown
  local VALUE_LIMIT = 100000 -- values of a JSON text that are read; each is a table for a moment

  -- Adds the leaves of a JSON value; containers are nodes only where a person sees them. Secrets are
  -- known by a member's name, for all of its items.
  local function add_json(view, tree, node, name, path, raw, range, secret)
    if view.json_left <= 0 then
      return
    end
    view.json_left = view.json_left - 1
    local first, length = node.first - 1, node.last - node.first + 1
    if node.kind == "{" or node.kind == "[" then
      local inner = tree
      if view.visible then
        local entries = node.members or node.items
        local text = format("%s: %s %d", name, node.kind == "{" and "members" or "items", #entries)
        inner = tree:add(range(first, length), texts.shown(text))
      end
      for index, member in ipairs(node.members or node.items) do
        local key, value = member.key, member.value
        if not key then -- an array
          add_json(view, inner, member, format("[%d]", index - 1), path .. "[]", raw, range, secret)
        else
          local label = key.text or sub(raw, key.first, key.last)
          -- The keys of a table are topics or groups, which may be called like a secret.
          local is_name = find(name, "Table$") and (value.members or value.items)
          local here = not is_name and texts.is_secret(label) and label or secret
          add_json(view, inner, value, label, path .. "." .. (key.text or "{}"), raw, range, here)
        end
      end
      return
    end
    local value = texts.shown(texts.masked(secret or name, node.text))
    local item = tree:add(fields.json, range(first, length), texts.shown(path) .. "=" .. value)
    if view.visible then
      item:set_text(texts.label(name .. ": " .. value))
    end
  end

  -- A body of JSON; why it is none, nil if it is.
  local function dissect_json(view, tree, range)
    local raw = range:raw()
    local wanted = view.visible or view.some and messages.is_wanted(view, tree, fields.json)
    if not wanted then
      return nil
    end
    local node, problem = json.read(raw, math.max(VALUE_LIMIT, rocketmq.prefs.json_limit))
    if not node then
      return problem or "no value"
    end
    view.json_left = rocketmq.prefs.json_limit
    if node.members or node.items then
      for index, member in ipairs(node.members or node.items) do
        local key, value = member.key, member.value or member
        local label, path = format("[%d]", index - 1), "[]"
        if key then
          label, path = key.text or sub(raw, key.first, key.last), key.text or "{}"
        end
        add_json(view, tree, value, label, path, raw, range, texts.is_secret(label) and label)
      end
    else
      add_json(view, tree, node, "value", "", raw, range)
    end
    if view.json_left <= 0 and view.visible then
      tree:add(range, "… and more: the preference json_limit says how much is shown")
    end
    return problem
  end

  -- Lines of `name=value` or `name:value`; what is called a password or secret is masked.
  local function dissect_lines(view, tree, range)
    if not view.visible and not (view.some and messages.is_wanted(view, tree, fields.text)) then
      return nil
    end
    local raw = range:raw(0, math.min(range:len(), TEXT_LIMIT))
    local at = 1
    while at <= #raw do
      local stop = find(raw, "\n", at, true) or #raw + 1
      local line = gsub(sub(raw, at, stop - 1), "\r$", "")
      if line ~= "" then
        line = gsub(line, "^([^=:]-)([=:]%s*)(.*)$", function(name, separator, value)
          return name .. separator .. texts.masked(name, value)
        end)
        tree:add(fields.text, range(at - 1, stop - at), texts.shown(line))
      end
      at = stop + 1
    end
    return nil
  end

  local function dissect_text(view, tree, range)
    if view.visible or view.some and messages.is_wanted(view, tree, fields.text) then
      local raw = range:raw(0, math.min(range:len(), TEXT_LIMIT))
      local text = gsub(raw, "[^\n]+", function(line) -- a long one with a secret is cut
        return texts.masked("", line)
      end)
      tree:add(fields.text, range, texts.shown(text))
    end
    return nil
  end

  local function dissect_data(view, tree, range)
    add(view, tree, fields.data, range:tvb(), 0, range:len())
    return nil
  end

  local TIMER_FIELDS = {
    "lastReadTimeMs", "lastTimerLogFlushPos", "lastTimerQueueOffset", "masterTimerQueueOffset",
    "dataVersionStateVersion", "dataVersionTimestamp", "dataVersionCounter",
  }

  local function dissect_checkpoint(view, tree, range)
    if not view.some then
      return nil
    end
    for index, name in ipairs(TIMER_FIELDS) do
      local at = (index - 1) * 8
      if at + 8 > range:len() then
        return format("%d bytes instead of %d", range:len(), #TIMER_FIELDS * 8)
      end
      local value = range(at, 8):int64()
      local item = tree:add(fields.json, range(at, 8), name .. "=" .. tostring(value))
      item:set_text(name .. ": " .. tostring(value))
    end
    return nil
  end

  -- A registration in its compressed form: lengths and texts within a zlib stream.
  local function dissect_registration(view, tree, range)
    if byte(range:raw(0, 1)) ~= 0x78 then
      return dissect_json(view, tree, range)
    elseif not view.some then
      return nil
    end
    local plain = messages.uncompress(range, "Decompressed registration")
    if not plain then
      return "the registration does not decompress"
    end
    local at, size = 0, plain:len()
    local function take(reader)
      if at + 4 > size then
        return false
      end
      local length = plain(at, 4):int()
      if length < 0 or at + 4 + length > size then
        return false
      end
      if length > 0 then
        reader(view, tree, plain(at + 4, length))
      end
      at = at + 4 + length
      return true
    end
    if not take(dissect_json) or at + 4 > size then
      return "the registration is cut"
    end
    local count = plain(at, 4):int()
    at = at + 4
    for _ = 1, math.min(count, rocketmq.prefs.json_limit) do
      if not take(dissect_text) then
        return "the registration is cut"
      end
    end
    return nil
  end

  -- A body of messages: how many, then each of them if somebody wants to see it.
  local function dissect_messages(view, tree, range, parts_of, add_parts)
    local parts, problem = parts_of(range)
    add(view, tree, fields.message_count, range:tvb(), 0, range:len(), #parts)
    view.count_text = format("%d message%s", #parts, #parts == 1 and "" or "s")
    if view.wants_messages then
      problem = add_parts(view, tree, range, parts) or problem
    end
    return problem
  end

  local function dissect_stored(view, tree, range)
    return dissect_messages(view, tree, range, records.records_of, records.add_records)
  end

  local function dissect_batch(view, tree, range)
    return dissect_messages(view, tree, range, records.items_of, records.add_items)
  end

  -- The body of a send: one message, of which all else stands in the header.
  local function dissect_message(view, tree, range, header)
    add(view, tree, fields.message_count, range:tvb(), 0, range:len(), 1)
    if view.wants_messages then
      local tvb, size = range:tvb(), range:len()
      local item = add(view, tree, fields.message, tvb, 0, size)
      local flag = messages.value_of("int", header.values.f or header.values.sysFlag or "0") or 0
      messages.add_body(view, item or tree, tvb, 0, size, flag)
      local key = view.visible and view.properties and view.properties.UNIQ_KEY
      if item and key then
        item:set_text("Message: " .. texts.label(key))
      end
    end
    return nil
  end

  local FORMS = {
    ["raw-message"] = dissect_message,
    ["batch-messages"] = dissect_batch,
    ["stored-messages"] = dissect_stored,
    ["stored-message"] = dissect_stored,
    ["properties-text"] = dissect_lines,
    ["timer-checkpoint"] = dissect_checkpoint,
    text = dissect_text,
  }

  -- What a body looks like of which nothing is known.
  local function form_of_bytes(range)
    local raw = range:raw(0, math.min(range:len(), 8))
    local first = sub(raw, 1, 1)
    if #raw == 8 and tables.magics[headers.int32_at(raw, 5) % 0x100000000] then
      return "stored-messages"
    elseif first == "{" or first == "[" then
      return "json"
    end
    return "raw"
  end

  -- The class or form of a command's body; whether the tables say so.
  local function form_of(header, request_code, range)
    local response = header.flag % 2 == 1
    local operation = request_code and tables.operations[request_code]
    local form = operation and (response and operation[4] or not response and operation[3]) or nil
    if not form or (response and not tables.successes[header.code]) then
      return form_of_bytes(range), false
    end
    return form, true
  end

  -- Adds the body of a command to its tree. What is odd about it goes to `view.say`.
  function bodies.dissect(view, tree, range, header, request_code)
    local form, known = form_of(header, request_code, range)
    local item = add(view, tree, fields.body, range:tvb(), 0, range:len())
    local node = item or tree
    if view.some then
      add(view, node, fields.body_kind, range:tvb(), 0, 0, form)
    end
    view.wants_messages = messages.are_wanted(view, tree)
    if item and view.visible then
      item:set_text(format("Body: %s, %d bytes", form, range:len()))
    end
    local reader = FORMS[form] or dissect_json
    if not header.is_response and request_code == tables.register_broker then
      reader = dissect_registration
    elseif form == "raw" then
      local start = range:raw(0, math.min(range:len(), TEXT_LIMIT))
      reader = texts.is_text(start) and dissect_text or dissect_data
    end
    local problem = reader(view, node, range, header)
    if problem and known then
      local of_messages = FORMS[form] and find(form, "message", 1, true)
      view.say(node, of_messages and "bad_message" or "bad_body", problem)
    end
  end
end
