-- Bodies of messages: stored records of both versions, items of batches, batches inside records.
local records = {}
do
  local format = string.format
  local add, is_wanted = messages.add, messages.is_wanted

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
      local total = headers.int32_at(data, at + 1)
      local magic = headers.int32_at(data, at + 5) % 0x100000000
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
  function records.items_of(range)
    return parts_of(range, "an item", why_no_item)
  end

  -- Adds the items of a batch; what is wrong with one of them, nil if nothing is.
  function records.add_items(view, tree, range, items)
    local tvb, problem = range:tvb(), nil
    for number, item in ipairs(items) do
      if view.left <= 0 then
        break
      end
      problem = records.add_item(view, tree, tvb, item.at, item.total, number) or problem
    end
    return problem
  end

  -- Adds the properties that bytes of a record or an item spell.
  local function add_properties_at(view, tree, tvb, offset, length)
    if length == 0 or not messages.properties_are_wanted(view, tree) then
      return {}
    end
    local node = add(view, tree, fields.properties, tvb, offset, length) or tree
    return messages.add_properties(view, node, tvb:raw(offset, length), tvb, offset, length, true)
  end

  function records.add_item(view, tree, tvb, at, total, number)
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
    local found = add_properties_at(view, node, tvb, properties_at + 2, properties_length)
    if view.visible then
      node:set_text(texts.label(format("Message %d: %s", number, found.UNIQ_KEY or "")))
    end
    return nil
  end

  local function add_time(view, tree, field, tvb, at)
    if view.visible or is_wanted(view, tree, field) then
      local high, low = tvb(at, 4):int(), tvb(at + 4, 4):uint()
      local milliseconds = high * 0x100000000 + low
      local seconds = math.floor(milliseconds / 1000)
      if seconds < -0x80000000 or seconds > 0x7FFFFFFFFF then
        seconds, milliseconds = 0, 0
      end
      local rest = math.floor(milliseconds - seconds * 1000)
      tree:add(field, tvb(at, 8), NSTime(seconds, rest * 1000000))
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
    return records.add_tail(view, node, tvb, next + 12, stop, sys_flag, number)
  end

  -- Body, topic and properties of a record, from its body length on.
  function records.add_tail(view, node, tvb, at, stop, sys_flag, number)
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
    local found = add_properties_at(view, node, tvb, properties_at + 2, properties_length)
    if inner and body then
      records.add_items(view, node, body, records.items_of(body))
    end
    if view.visible then
      local key = texts.shown(found.UNIQ_KEY or "")
      node:set_text(texts.label(format("Message %d: %s %s", number, topic, key)))
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
    local small = total < tables.min_record_size
    return small and format("size %d is too small for a record", total) or nil
  end

  -- The stored records of a body, see `parts_of`.
  function records.records_of(range)
    return parts_of(range, "a record", why_no_record)
  end

  -- Adds the records of a body; what is wrong with one of them, nil if nothing is.
  function records.add_records(view, tree, range, parts)
    local tvb, problem = range:tvb(), nil
    for number, record in ipairs(parts) do
      if view.left <= 0 then
        break
      end
      view.topic_width = record.magic == tables.magic_v2 and 2 or 1
      problem = add_record(view, tree, tvb, record.at, record.total, number) or problem
    end
    return problem
  end
end
