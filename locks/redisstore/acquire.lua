-- ARGV: channels, key, client, life of a request that waits, then 19 for each request.
local client, life = ARGV[3], tonumber(ARGV[4])
open()

-- quick grants a mutex that is free and that nobody waits for, with as few commands as it
-- takes. Nothing can have expired then.
local function quick(id, version, owner, lease, delay)
  local fence = math.max(r.fence + 1, now)
  local e = {version = version, prev = '', owner = owner, client = client, shared = ARGV[9] == '1', barging = ARGV[14] == '1', permits = 1,
    lease = lease, delay = delay, delete = ARGV[19] == '1', slot = 0, fence = fence, acquired = now, mutex = true}
  put(id, e)
  call('ZADD', H, str(now + lease), id)
  call('HSET', R, 'ticket', str(r.ticket + 1), 'fence', str(fence), 'busy', 1, 'delay', str(delay), 'updated_by', owner, 'updated_at', str(now))
  if ARGV[16] == '1' then call('HSET', R, 'data', ARGV[17]) end
  return {str(now), str(now + lease), '1', {{'granted', grant(id, e, now + lease)}}}
end

if #ARGV == 23 and r and r.kind == MUTEX and r.busy == 0 and now >= r.shut and tonumber(ARGV[8]) == MUTEX and tonumber(ARGV[11]) == 1 and alone() then
  return quick(ARGV[5], ARGV[6], ARGV[7], tonumber(ARGV[12]), tonumber(ARGV[15]))
end

if r then reap() end

local requests, answers = {}, {}
for at = 5, #ARGV, 19 do
  requests[#requests + 1] = {
    id = ARGV[at], version = ARGV[at + 1], owner = ARGV[at + 2], kind = tonumber(ARGV[at + 3]), shared = ARGV[at + 4] == '1',
    size = tonumber(ARGV[at + 5]), permits = tonumber(ARGV[at + 6]), lease = tonumber(ARGV[at + 7]), wait = ARGV[at + 8] == '1',
    barging = ARGV[at + 9] == '1', delay = tonumber(ARGV[at + 10]), data = ARGV[at + 11] == '1' and ARGV[at + 12] or nil,
    existing = ARGV[at + 13] == '1', delete = ARGV[at + 14] == '1', resize = ARGV[at + 15] == '1',
    retention = tonumber(ARGV[at + 16]), strict = ARGV[at + 17] == '1', brief = ARGV[at + 18] == '1',
  }
end

-- admit makes the record if there is none, and says what the request has against it.
local function admit(q)
  local size = q.kind == SEMAPHORE and q.size or 1
  if not r then
    if q.existing then return 'none' end
    make(q.kind, math.max(size, 1), q.retention, {'lease', q.lease, 'fair', q.barging and '0' or '1', 'version', q.version,
      'created_by', q.owner, 'updated_by', q.owner, 'delete', q.brief and '1' or '0', 'delay', '0'})
  end
  if r.kind ~= q.kind then return 'kind' end
  if size ~= 0 and size ~= r.size and q.strict then return 'size' end
  if size ~= 0 and size ~= r.size and q.resize then
    save('size', size)
    if call('HEXISTS', R, 'retention') == 1 then call('HSET', R, 'delete', '0') end -- what a create has said stays
    keep()
    touched(q.owner)
  end
  if q.permits > r.size then return 'permits' end
end

-- enter adds a request to the queue, or keeps alive the one that is there. One that was
-- kept alive a moment ago is left as it is: to write costs more than to look.
local function enter(q)
  local barged, ends, known = false, call('ZSCORE', X, q.id), nil
  if not ends then
    save('ticket', r.ticket + 1)
    call('ZADD', Q, str(r.ticket), q.id)
  else
    known = call('HGET', E, q.id)
    if r.barging > 0 then barged = cmsgpack.unpack(known).barging end
  end
  if q.barging ~= barged then save('barging', r.barging + (barged and -1 or 1)) end
  local packed = cmsgpack.pack({version = q.version, prev = '', owner = q.owner, client = client, shared = q.shared, barging = q.barging,
    permits = q.permits, most = q.size > 0 and q.size or nil, lease = q.lease, delay = q.delay, delete = q.delete})
  if packed == known and math.abs(tonumber(ends) - now - life) < life / 6 then return end
  call('ZADD', X, str(now + life), q.id)
  call('HSET', E, q.id, packed)
end

local function slot()
  if r.kind == MUTEX then return 0 end
  for from = 0, r.size, 50 do
    local names = {}
    for i = from, from + 49 do names[#names + 1] = 's' .. i end
    for i, taken in ipairs(call('HMGET', R, unpack(names))) do
      if not taken then return from + i - 1 end
    end
  end
end

local function give(q, e)
  call('ZREM', Q, q.id)
  call('ZREM', X, q.id)
  if e.barging then save('barging', r.barging - 1) end
  e.slot = slot()
  save('fence', math.max(r.fence + 1, now))
  save('busy', r.busy + e.permits)
  if r.kind == RW and not e.shared then save('writers', r.writers + 1) end
  e.fence, e.acquired, e.mutex = r.fence, now, r.kind == MUTEX
  put(q.id, e)
  call('ZADD', H, str(now + e.lease), q.id)
  call('HSET', R, 'delay', str(e.delay))
  if r.kind ~= MUTEX then call('HSET', R, 's' .. e.slot, q.id) end
  if q.data then call('HSET', R, 'data', q.data) end
  touched(e.owner)
end

-- settle grants a request if it is its turn, and says how it stands.
local function settle(q)
  local e, ends = entry(q.id), tonumber(call('ZSCORE', H, q.id) or '0')
  local held = ends > 0
  if held and not e.revoked then -- asked again: the answer was lost
    ends = math.max(ends, now + q.lease)
    call('ZADD', H, str(ends), q.id)
  elseif not held and fits(e, call('ZRANK', Q, q.id)) then
    give(q, e)
    held, ends = true, now + e.lease
  end
  if held then return {'granted', grant(q.id, e, ends)} end
  local first = call('ZRANGE', H, 0, 0)[1]
  return {'waits', str(call('ZRANK', Q, q.id)), first and entry(first).owner or ''}
end

for i, q in ipairs(requests) do
  local held = call('ZSCORE', H, q.id) -- the answer was lost: the record may be another's by now
  local refused = not held and admit(q)
  if refused then
    if r then withdraw(q.id) end
    answers[i] = {'refused', refused, r and str(r.kind) or '', r and str(r.size) or ''}
  elseif not held then
    enter(q)
  end
end
for i, q in ipairs(requests) do answers[i] = answers[i] or settle(q) end
for i, q in ipairs(requests) do -- what does not wait leaves nothing behind
  if answers[i][1] == 'waits' and not q.wait then withdraw(q.id) end
end
wake()
local following = 0
if r then
  local ends = tonumber(call('ZRANGE', H, 0, 0, 'WITHSCORES')[2] or '0')
  following = ends
  if r.shut > now and (ends == 0 or r.shut < ends) then following = r.shut end
end
return {str(now), str(following), r and str(r.size) or '0', answers}
