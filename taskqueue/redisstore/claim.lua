-- ARGV: channel, worker, nonce, how many, lease in µs, the classes in the order in
-- which they are looked at (digits from 1).
local worker, nonce, most, lease = ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
step()

local function crash(t)
  t.crashes = t.crashes + 1
  set(t, REAPED, true)
  count('crashed', 1)
  t.error = 'its lease ran out: the worker ' .. t.worker .. ' has ended, or could not reach the store'
  if has(t, CANCEL) then cancelled(t)
  elseif t.crashes >= t.maxCrashes then bury(t)
  else
    local after = 0
    if t.crashes > 1 then after = math.min(SECOND * 2 ^ math.min(t.crashes - 2, 10), MINUTE) end
    wait(t, RETRYING, after)
  end
end

-- again answers a claim that is repeated: with what it got and still has.
local function again(last)
  local tasks = {}
  for i = 3, #last, 2 do
    local t = load(last[i])
    if t and t.state == RUNNING and t.token == last[i + 1] then
      if lend(t, lease) then save(t) end
      tasks[#tasks + 1] = fields(t)
    end
  end
  return {now, now, tasks}
end

local last = call('HGET', N, worker)
if last then
  last = cmsgpack.unpack(last)
  if nonce ~= '' and last[1] == nonce then return done(again(last)) end
else -- a new worker: forget those that have not called for an hour
  local all = call('HGETALL', N)
  for i = 1, #all, 2 do
    if now - cmsgpack.unpack(all[i + 1])[2] > HOUR then call('HDEL', N, all[i]) end
  end
end

-- spare gives a lease that has run out its length once more, counted from the end of a
-- gap that was longer than a third of it: the worker could not call, or we could not
-- hear it. Once only: where nobody calls often enough there is always a gap.
local function spare(t, ends)
  local all, more = gaps(), 0
  for i = 1, #all, 2 do
    if all[i] > t.length / 3 and all[i + 1] > ends - t.length then more = all[i + 1] + t.length end
  end
  if has(t, SPARED) or more <= now then return false end
  call('ZADD', RUN, more - shift, t.id)
  set(t, SPARED, true)
  save(t)
  return true
end

local over_ = call('ZRANGEBYSCORE', RUN, '-inf', now - shift, 'WITHSCORES', 'LIMIT', 0, 100)
for i = 1, #over_, 2 do
  local t = load(over_[i])
  if not t then call('ZREM', RUN, over_[i])
  elseif not spare(t, tonumber(over_[i + 1]) + shift) then change(t, crash) end
end

local s, trimmed = settings(), 0
for _, id in ipairs(call('ZRANGEBYSCORE', FORGET, '-inf', now, 'LIMIT', 0, 100)) do
  local t = load(id)
  if t then forget(t) else call('ZREM', FORGET, id) end
end
local function trim(ids)
  for _, id in ipairs(ids) do
    local t = load(id)
    if t then forget(t) else call('ZREM', DEAD, id) end
  end
  count('trimmed', #ids)
  trimmed = trimmed + #ids
end
if (s.dead_retention or 0) > 0 then
  trim(call('ZRANGEBYSCORE', DEAD, '-inf', now - s.dead_retention / 1000, 'LIMIT', 0, 100))
end
if (s.max_dead or 0) > 0 then
  local over = math.min(call('ZCARD', DEAD) - s.max_dead, 100)
  if over > 0 then trim(call('ZRANGE', DEAD, 0, over - 1)) end
end

local n, next_ = most, 0
local running = call('ZCARD', RUN)
if s.paused then n = 0 end
if (s.concurrency or 0) > 0 then n = math.min(n, math.max(s.concurrency - running, 0)) end
local allowance
if (s.rate or 0) > 0 then
  local burst = math.max(s.burst or 1, 1)
  local at = number('allowed_at')
  allowance = burst
  if at > 0 then allowance = math.min(burst, number('allowance') + math.max(now - at, 0) / SECOND * s.rate) end
  if n > math.floor(allowance) then
    n = math.floor(allowance)
    next_ = now + math.ceil((n + 1 - allowance) / s.rate * SECOND)
  end
end

-- begin puts a task that waits under a lease; nil if it is not to run.
local function begin(id, due, token)
  local t = load(id)
  if not t then -- its envelope is lost: a dead letter says so
    call('ZREM', due, id)
    call('HSET', P, id, struct.pack('>I7BBI2B', now, 0, 0, 0, 0))
    t = {id = id, state = ENDED_DEAD, token = 0, attempt = 0, failures = 0, crashes = 0, releases = 0, settled = 0, flags = 0,
      started = 0, ended = now, worker = '', error = 'the store had lost its record', result = '', progress = '', due = now, length = 0, keep = 0, key = ''}
    index(t)
    save(t)
    count('dead', 1)
    dead[#dead + 1] = id
    return nil
  end
  if t.attempt == 0 and t.expires > 0 and t.expires < now then
    change(t, function()
      t.error = 'it was not started before it expired'
      bury(t)
    end)
    count('expired', 1)
    return nil
  end
  change(t, function()
    t.state, t.token, t.worker, t.lease, t.length = RUNNING, token, worker, now + lease, lease
    t.attempt = t.attempt + 1
    t.started = now
    set(t, REAPED, false)
    set(t, SPARED, false)
    if t.until_ == 1 then set(t, HOLDS, false) end
  end)
  return t
end

local tasks, claim = {}, {nonce, now}
local token = number('token')
for class in string.gmatch(ARGV[6], '%d') do
  local due = KEYS[tonumber(class)]
  while #tasks < n do
    local ids = call('ZRANGEBYSCORE', due, '-inf', now, 'LIMIT', 0, n - #tasks)
    if #ids == 0 then break end
    for _, id in ipairs(ids) do
      token = math.max(token + 1, now)
      local t = begin(id, due, token)
      if t then
        tasks[#tasks + 1] = fields(t)
        claim[#claim + 1] = id
        claim[#claim + 1] = token
      end
    end
  end
end
wake = wake and #tasks == most -- else nothing of what was reaped is left for others
if (s.concurrency or 0) > 0 and running + #tasks >= s.concurrency and #tasks < most then call('HSET', C, 'full', 1) end
call('HSET', C, 'token', token)
if allowance then call('HSET', C, 'allowance', string.format('%.17g', allowance - #tasks), 'allowed_at', now) end
call('HSET', N, worker, cmsgpack.pack(claim))
count('claimed', #tasks)

local function earlier(t) if next_ == 0 or t < next_ then next_ = t end end
local full = (s.concurrency or 0) > 0 and running + #tasks >= s.concurrency
if not s.paused and not full and not (next_ > 0 and #tasks == n) then
  for class = 1, 8 do
    local head = call('ZRANGE', KEYS[class], 0, 0, 'WITHSCORES')
    if head[1] then earlier(tonumber(head[2])) end
  end
end
local ends = call('ZRANGE', RUN, 0, 0, 'WITHSCORES')
if ends[1] then earlier(tonumber(ends[2]) + shift) end
if next_ > 0 and next_ < now then next_ = now end
return done({now, next_, tasks, dead, trimmed})
