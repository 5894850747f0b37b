-- What every step begins with. KEYS are the keys of one queue, always all of them,
-- in this order. All of them are in one slot of a cluster.
--   1..8   due     class of priority, the most urgent first: id -> when, in µs
--   9      run     id -> end of its lease, less shift (see step)
--   10     retry   those of due that have failed before: id -> when
--   11..13 dead, done, cancelled: id -> when it ended
--   14     forget  done and cancelled: id -> when it is forgotten
--   15     p       id -> envelope: a header that this file knows, and what only Go knows
--   16     s       id -> what has happened to it; absent until it is claimed first
--   17     u       unique key -> id of its holder
--   18     n       worker -> its last claim
--   19     c       counters and settings
--   20     t       periodic jobs
-- ARGV[1] is the channel on which others hear that something is due earlier.
local RUN, RETRY, DEAD, DONE, CANCELLED, FORGET = KEYS[9], KEYS[10], KEYS[11], KEYS[12], KEYS[13], KEYS[14]
local P, S, U, N, C, T = KEYS[15], KEYS[16], KEYS[17], KEYS[18], KEYS[19], KEYS[20]
local SCHEDULED, RUNNING, RETRYING, ENDED_DONE, ENDED_DEAD, ENDED_CANCELLED = 1, 3, 4, 5, 6, 7
local HOLDS, REAPED, CANCEL, SPARED = 1, 2, 4, 8 -- flags
local SECOND, MINUTE, HOUR = 1000000, 60000000, 3600000000

local call = redis.call
local clock = call('TIME')
local now = tonumber(clock[1]) * SECOND + tonumber(clock[2])
local wake = false

local function count(name, n)
  if n ~= 0 then call('HINCRBY', C, 'n:' .. name, n) end
end

local function number(field) return tonumber(call('HGET', C, field) or '0') end

-- A lease is stored less shift, so that all follow a clock that was put back in one
-- write.
local shift = number('shift')

-- gaps returns the times in which no worker has called, those that may matter yet: the
-- length of each and when it was over. The later the shorter.
local function gaps()
  local g = call('HGET', C, 'gaps')
  return g and cmsgpack.unpack(g) or {}
end

-- step notes that a worker has called. A gap is kept until there is one behind it that
-- was as long, or no lease is left that it may matter for: those are shorter than
-- three times the gap. So there are never many. Those below a millisecond do not count.
local function step()
  local last = number('step')
  call('HSET', C, 'step', now)
  if last == 0 or now >= last and now - last < 1000 then return end
  local gap, back = now - last, 0
  if now < last then -- the clock was put back: leases end as long from now as before
    gap, back = last - now, last - now
    shift = shift - back
    call('HSET', C, 'shift', shift)
  end
  local all, kept = gaps(), {}
  for i = 1, #all, 2 do
    local at = all[i + 1] - back
    if all[i] > gap and now - at <= 3 * all[i] then
      kept[#kept + 1] = all[i]
      kept[#kept + 1] = at
    end
  end
  kept[#kept + 1] = gap
  kept[#kept + 1] = now
  call('HSET', C, 'gaps', cmsgpack.pack(kept))
end

local function has(t, flag) return math.floor(t.flags / flag) % 2 == 1 end
local function set(t, flag, on)
  if has(t, flag) ~= on then t.flags = t.flags + (on and flag or -flag) end
end
local function waits(t) return t.state == SCHEDULED or t.state == RETRYING end

-- header reads what this file has to know of an envelope. What most tasks do not
-- set takes no place in it: what says which follow.
local KEY, KEEP, EXPIRES, START = 1, 2, 4, 8
local function header(t, p)
  local what, at
  t.enqueued, what, t.priority, t.maxFailures, t.maxCrashes, at = struct.unpack('>I7BBI2B', p)
  local function follows(bit) return math.floor(what / bit) % 2 == 1 end
  t.keep, t.expires, t.key, t.until_ = 0, 0, '', follows(START) and 1 or 0
  if follows(KEEP) then t.keep, at = struct.unpack('>I6', p, at) end
  if follows(EXPIRES) then t.expires, at = struct.unpack('>I7', p, at) end
  if follows(KEY) then
    local n
    n, at = struct.unpack('>I2', p, at)
    t.key = string.sub(p, at, at + n - 1)
  end
  t.p = p
end

-- load returns what is known of a task; nil if that is nothing.
local function load(id)
  local p = call('HGET', P, id)
  if not p then return nil end
  local t = {id = id}
  header(t, p)
  local s = call('HGET', S, id)
  if s then
    local v = cmsgpack.unpack(s)
    t.state, t.token, t.attempt, t.failures, t.crashes, t.releases, t.settled, t.flags = v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8]
    t.started, t.ended, t.worker, t.error, t.result, t.progress, t.due, t.length = v[9], v[10], v[11], v[12], v[13], v[14], v[15], v[16] or 0
  else
    t.state, t.token, t.attempt, t.failures, t.crashes, t.releases, t.settled, t.flags = SCHEDULED, 0, 0, 0, 0, 0, 0, 0
    t.started, t.ended, t.worker, t.error, t.result, t.progress = 0, 0, '', '', '', ''
    if t.key ~= '' then t.flags = HOLDS end
    t.length = 0
    t.due = tonumber(call('ZSCORE', KEYS[8 - t.priority], id) or '0')
  end
  return t
end

local indexes = {[ENDED_DONE] = DONE, [ENDED_DEAD] = DEAD, [ENDED_CANCELLED] = CANCELLED}

-- index enters t in what finds it. It does not write the task itself.
local function index(t)
  if waits(t) then
    local due = KEYS[8 - t.priority]
    local head = call('ZRANGE', due, 0, 0, 'WITHSCORES')
    if not head[1] or t.due < tonumber(head[2]) then wake = true end
    call('ZADD', due, t.due, t.id)
    if t.state == RETRYING then call('ZADD', RETRY, t.due, t.id) end
  elseif t.state == RUNNING then
    call('ZADD', RUN, t.lease - shift, t.id)
  else
    call('ZADD', indexes[t.state], t.ended, t.id)
    if t.state ~= ENDED_DEAD then call('ZADD', FORGET, t.ended + math.max(t.keep, MINUTE), t.id) end
  end
  if has(t, HOLDS) then call('HSET', U, t.key, t.id) end
end

-- save writes what has happened to t.
local function save(t)
  call('HSET', S, t.id, cmsgpack.pack({t.state, t.token, t.attempt, t.failures, t.crashes, t.releases, t.settled, t.flags,
    t.started, t.ended, t.worker, t.error, t.result, t.progress, t.due, t.length}))
end

-- lend gives t, which runs, a lease from now.
local function lend(t, lease)
  call('ZADD', RUN, now + lease - shift, t.id)
  local changed = t.length ~= lease or has(t, SPARED)
  t.length = lease
  set(t, SPARED, false)
  return changed -- then it is to be saved
end

local function unindex(t)
  if waits(t) then
    call('ZREM', KEYS[8 - t.priority], t.id)
    if t.state == RETRYING then call('ZREM', RETRY, t.id) end
  elseif t.state == RUNNING then
    call('ZREM', RUN, t.id)
  else
    call('ZREM', indexes[t.state], t.id)
    if t.state ~= ENDED_DEAD then call('ZREM', FORGET, t.id) end
  end
  if has(t, HOLDS) then call('HDEL', U, t.key) end
end

local function forget(t)
  unindex(t)
  call('HDEL', P, t.id)
  call('HDEL', S, t.id)
end

-- change moves t to another state: f changes it.
local function change(t, f)
  unindex(t)
  f(t)
  index(t)
  save(t)
end

-- over ends a task. Its unique key is free from now on.
local function over(t, state)
  t.state, t.ended = state, now
  set(t, HOLDS, false)
end

local dead = {} -- what this step has made dead letters
local function bury(t) over(t, ENDED_DEAD); count('dead', 1); dead[#dead + 1] = t.id end
local function cancelled(t) over(t, ENDED_CANCELLED); count('cancelled', 1) end
local function wait(t, state, after) t.state, t.due = state, now + after end

-- fields returns t as Go reads it: the envelope, then numbers, then texts.
local function fields(t)
  local lease = 0
  if t.state == RUNNING then lease = (tonumber(call('ZSCORE', RUN, t.id) or '0')) + shift end
  return {t.id, t.p, t.state, t.token, t.attempt, t.failures, t.crashes, t.releases, t.flags,
    t.started, t.ended, t.due, lease, t.worker, t.error, t.result, t.progress}
end

-- add adds a task of which the header has been read; delay is from now, unless at is not 0.
local function add(id, envelope, delay, at)
  local p = struct.pack('>I7', now) .. envelope
  local t = {id = id, state = SCHEDULED, flags = 0}
  header(t, p)
  if call('HEXISTS', P, id) == 1 then return {2, id} end
  if t.key ~= '' then
    local holder = call('HGET', U, t.key)
    if holder then count('duplicate', 1); return {3, holder} end
    t.flags = HOLDS
  end
  t.due = now + delay
  if at > 0 then t.due = at end
  call('HSET', P, id, p)
  index(t)
  count('added', 1)
  return {1, id}
end

local function settings()
  local s = call('HGET', C, 'settings')
  if not s then return {} end
  return cjson.decode(s)
end

local function done(answer)
  if wake then call('PUBLISH', ARGV[1], '') end
  return answer
end
