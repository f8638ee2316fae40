-- Requests and responses: who answers what, when, and what is odd about it.
--
-- A response belongs to the last request of the other end with the same opaque; brokers send
-- requests too, so each end has its own. A response that was captured before its request waits for
-- it. What is found on the first pass is kept by frame, for later looks at a packet.
local pairing = {}
do
  local floor = math.floor
  local streams, links = {}, {}

  function pairing.clear()
    streams, links = {}, {}
  end

  -- What is known of a TCP stream: per end the requests that wait, and responses before theirs.
  function pairing.stream_of(number)
    local stream = streams[number]
    if not stream then
      stream = {
        known = false,
        [0] = { requests = {}, early = {} },
        [1] = { requests = {}, early = {} },
      }
      streams[number] = stream
    end
    return stream
  end

  local function end_of(pinfo)
    local from, to = pinfo.src_port, pinfo.dst_port
    if from == to then
      return tostring(pinfo.src) < tostring(pinfo.dst) and 0 or 1
    end
    return from < to and 0 or 1
  end

  local function nanoseconds_between(request, response)
    return floor((response.at - request.at) * 1e9 + 0.5)
  end

  local EARLY = 0.001 -- seconds by which a response may be stamped before its request

  local function note_request(ends, opaque, one, oneway)
    local exchange = { request = one, oneway = oneway }
    local early = ends.early[opaque]
    if early and not oneway then
      ends.early[opaque] = nil
      if early.response.at + EARLY >= one.at then
        early.request = one
        early.time = nanoseconds_between(one, early.response)
        return early
      end
    end
    local before = ends.requests[opaque]
    if before and not before.oneway then
      if oneway then
        return exchange -- the one before still waits
      end
      exchange.reused = before.request.frame
    end
    ends.requests[opaque] = exchange
    return exchange
  end

  local function note_response(ends, opaque, one)
    local exchange = ends.requests[opaque]
    if exchange and exchange.request.at <= one.at + EARLY then
      if exchange.oneway then
        local request = exchange.request
        return { response = one, request = request, answers_oneway = request.frame }
      end
      exchange.response = one
      exchange.time = nanoseconds_between(exchange.request, one)
      ends.requests[opaque] = nil
      return exchange
    end
    exchange = { response = one }
    ends.early[opaque] = exchange
    return exchange
  end

  -- The exchange of a command: request, response (each with frame, at, code, version) or one.
  function pairing.exchange_of(pinfo, number, header)
    local frame = pinfo.number
    local response = header.flag % 2 == 1
    local oneway = header.flag % 4 == 2
    local key = header.opaque * 2 + (response and 1 or 0)
    local of_frame = links[frame]
    if pinfo.visited then
      return of_frame and of_frame[key] or {}
    end
    local one = { frame = frame, at = pinfo.rel_ts, code = header.code, version = header.version }
    local stream, side, exchange = pairing.stream_of(number), end_of(pinfo), nil
    if response then
      exchange = note_response(stream[1 - side], header.opaque, one)
    else
      exchange = note_request(stream[side], header.opaque, one, oneway)
    end
    if not of_frame then
      of_frame = {}
      links[frame] = of_frame
    end
    of_frame[key] = exchange
    return exchange
  end
end
