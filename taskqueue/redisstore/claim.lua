-- ARGV: channel, worker, nonce, how many, lease in µs, the classes in the order in
-- which they are looked at (digits from 1), the name under which the worker sleeps.
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
  local tasks, room = {}, MAX_BYTES
  each(last, 3, 2, function(i)
    local t = load(last[i], one)
    if t and t.state == RUNNING and t.token == last[i + 1] then
      if lend(t, lease) then save(t) end
      room = room - size(t)
      if room < 0 then t.progress = '' end -- what it has noted since then
      tasks[#tasks + 1] = fields(t)
    end
  end)
  return {now, now, tasks}
end

local last = call('HGET', N, worker)
if last then
  last = cmsgpack.unpack(last)
  if nonce ~= '' and last[1] == nonce then return done(again(last)) end
  -- One that was given up comes late, behind others of its worker: nobody waits for it.
  local life, number = string.match(nonce, '^(.*)/(%d+)$')
  local of, n = string.match(last[1], '^(.*)/(%d+)$')
  if life and life == of and tonumber(number) < tonumber(n) then return done({now, now, {}}) end
else -- a new worker: of some others it forgets those that have not called for an hour
  local at, some = unpack(call('HSCAN', N, call('HGET', C, 'scanned') or '0', 'COUNT', 100))
  for i = 1, #some, 2 do
    if now - cmsgpack.unpack(some[i + 1])[2] > HOUR then call('HDEL', N, some[i]) end
  end
  call('HSET', C, 'scanned', at)
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
  zadd(RUN, more - shift, t.id)
  set(t, SPARED, true)
  save(t)
  return true
end

local over_ = call('ZRANGEBYSCORE', RUN, '-inf', now - shift, 'WITHSCORES', 'LIMIT', 0, 100)
each(over_, 1, 2, function(i)
  local t = load(over_[i], one)
  if not t then
    zrem(RUN, over_[i])
    orphan(over_[i])
  elseif not spare(t, tonumber(over_[i + 1]) + shift) then change(t, crash) end
end)
flush()

-- recall looks at some of what was due before the clock was put back, and has not been claimed: what
-- was added by that clock, and for no time that somebody has said, is moved back with it.
local function recall()
  local class, from, to, back = unpack(cmsgpack.unpack(meta.ahead))
  local room, bytes = MAX_IDS, MAX_BYTES
  while class <= 8 and room > 0 do
    local due, stopped = KEYS[class], nil
    local found = call('ZRANGEBYSCORE', due, from, string.format('%.0f', to), 'WITHSCORES', 'LIMIT', 0, room)
    each(found, 1, 2, function(i)
      local t = load(found[i], one)
      bytes = bytes - (t and #t.p or 0)
      if bytes < 0 and i > 1 then stopped = i; return false end
      if t and t.enqueued > now and not t.timed and t.token == 0 then
        hset(P, found[i], struct.pack('>I7', t.enqueued - back) .. string.sub(t.p, 8))
        t.due = t.due - back
        zadd(due, t.due, found[i])
        if hget(S, found[i]) then save(t) end
      end
    end)
    flush()
    if stopped then
      from, room = found[stopped + 1], 0
    elseif #found == 2 * room then -- the next is behind the last, or with it if others may be
      from, room = (found[#found] == found[2] and '(' or '') .. found[#found], 0
    else
      class, from, room = class + 1, string.format('(%.0f', now), room - #found / 2
    end
  end
  remember('ahead', class <= 8 and cmsgpack.pack({class, from, to, back}) or '')
end
if pending('ahead') then recall() end
if pending('releases') or #ended > 0 then release() end

local s, trimmed = settings(), 0
local function forgetAll(key, ids)
  each(ids, 1, 1, function(i)
    local t = load(ids[i], one)
    if t then forget(t) else
      for _, of in ipairs({key, DONE, CANCELLED}) do zrem(of, ids[i]) end
      hdel(S, ids[i])
    end
  end)
  flush()
end
forgetAll(FORGET, call('ZRANGEBYSCORE', FORGET, '-inf', now, 'LIMIT', 0, 100))
local function trim(ids)
  forgetAll(DEAD, ids)
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

local limits, parked, open, stale = limitsOf(), 0, {}, false
if limits then open, stale = bringBack(limits, n > 0) end

-- begin puts a task that waits under a lease. It returns nil if it is not to run, and
-- false if there is no room for it in the answer.
local function begin(id, due, token, room)
  local t = load(id, one)
  if not t then
    zrem(due, id)
    zrem(RETRY, id)
    orphan(id)
    return nil
  end
  if t.attempt == 0 and not has(t, LASTS) and t.expires > 0 and t.expires < now then
    change(t, function()
      t.error = 'it was not started before it expired'
      bury(t)
    end)
    count('expired', 1)
    return nil
  end
  if size(t) > room then return false end
  local group = ''
  if limits and limits.any then
    if not admit(limits, t) then
      park(limits, t)
      parked = parked + 1
      return nil
    end
    group = t.group
  end
  unindex(t)
  t.state, t.token, t.worker, t.lease, t.length, t.group = RUNNING, token, worker, now + lease, lease, group
  t.attempt = t.attempt + 1
  t.started = now
  set(t, REAPED, false)
  set(t, SPARED, false)
  if t.until_ == 1 then set(t, HOLDS, false) end
  index(t)
  save(t)
  return t
end

-- first are the heads of the classes; nil: there is none.
local first = {}
local function look(class) first[class] = tonumber(call('ZRANGE', KEYS[class], 0, 0, 'WITHSCORES')[2]) end
for class = 1, 8 do look(class) end

local tasks, claim, seen, room = {}, {nonce, now}, 0, math.huge -- for the first, however large it is
local token = number('token')
for class in string.gmatch(ARGV[6], '%d') do
  class = tonumber(class)
  local due = KEYS[class]
  while #tasks < n and seen < MAX_IDS and room and first[class] and first[class] <= now do
    local found = call('ZRANGEBYSCORE', due, '-inf', now, 'WITHSCORES', 'LIMIT', 0, math.min(math.max(n - #tasks, 2 * parked), MAX_IDS - seen)) -- where many are parked, more at a time
    parked = 0
    seen = seen + #found / 2
    read[due] = {}
    for i = 1, #found, 2 do read[due][found[i]] = tonumber(found[i + 1]) end
    each(found, 1, 2, function(i)
      if #tasks == n then return false end -- the rest is for others
      local t = begin(found[i], due, math.max(token + 1, now), room)
      if t == false then room = nil; return false end
      if t then
        token = t.token
        room = math.min(room, MAX_BYTES) - size(t)
        tasks[#tasks + 1] = fields(t)
        claim[#claim + 1] = found[i]
        claim[#claim + 1] = token
      end
    end)
    flush()
    look(class)
  end
end
if #ended > 0 then -- what it was to claim has expired
  release()
  for class = 1, 8 do look(class) end
end
if #tasks < most then -- nothing of what was reaped is left for others, and the worker sleeps
  wake, ready = false, 0
  if call('ZADD', SLEEP, now, ARGV[7]) == 1 then call('ZREMRANGEBYSCORE', SLEEP, '-inf', now - MINUTE) end
elseif most > 0 then
  ready = ready - #tasks
  call('ZREM', SLEEP, ARGV[7])
end
if (s.concurrency or 0) > 0 and running + #tasks >= s.concurrency and #tasks < most then remember('full', 1) end
remember('token', token)
if allowance then remember('allowance', string.format('%.17g', allowance - #tasks)); remember('allowed_at', now) end
call('HSET', N, worker, cmsgpack.pack(claim))
count('claimed', #tasks)

local function earlier(t) if next_ == 0 or t < next_ then next_ = t end end
local full = (s.concurrency or 0) > 0 and running + #tasks >= s.concurrency
local kept = s.paused or full or next_ > 0 and #tasks == n -- by the queue, whatever is due
if not kept then
  for class = 1, 8 do
    if first[class] then earlier(first[class]) end
  end
end
if limits then
  local at = noteLimits(open)
  if stale then earlier(now) end
  if at and not kept then earlier(math.max(at, 1)) end
end
local ends = call('ZRANGE', RUN, 0, 0, 'WITHSCORES')
if ends[1] then earlier(tonumber(ends[2]) + shift) end
if pending('ahead') or pending('releases') or next_ > 0 and next_ < now then next_ = now end
return done({now, next_, tasks, dead, trimmed})
