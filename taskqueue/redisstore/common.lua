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
--   21     sleep   who waits for something to be due -> when it has asked
-- ARGV[1] is the channel on which others hear that something is due earlier.
local RUN, RETRY, DEAD, DONE, CANCELLED, FORGET = KEYS[9], KEYS[10], KEYS[11], KEYS[12], KEYS[13], KEYS[14]
local P, S, U, N, C, T, SLEEP = KEYS[15], KEYS[16], KEYS[17], KEYS[18], KEYS[19], KEYS[20], KEYS[21]
local SCHEDULED, RUNNING, RETRYING, ENDED_DONE, ENDED_DEAD, ENDED_CANCELLED = 1, 3, 4, 5, 6, 7
local HOLDS, REAPED, CANCEL, SPARED = 1, 2, 4, 8 -- flags
local LASTS = 16 -- it does not expire any more: it has snoozed, or is to run again
local MAX_IDS, MAX_BYTES = 1000, 4194304 -- of one step
local SECOND, MINUTE, HOUR = 1000000, 60000000, 3600000000

local call = redis.call
local clock = call('TIME')
local now = tonumber(clock[1]) * SECOND + tonumber(clock[2])
local wake, ready = false, 0 -- all that sleep are to be woken; as many as there are tasks that have become due

-- What a step writes is gathered, and sent with one command for each key and kind: a
-- call costs more than what it does. The last write of a member counts. hget, zscore
-- and load see what was gathered; whatever else looks at a key of tasks calls flush
-- before it. Every step ends with done, which does so, too.
local hashes, sets, counts = {}, {}, {} -- key -> field -> value or false; key -> id -> score or false; name -> n
local read = {} -- key -> field -> value or false, key -> id -> score: read ahead

local function note(all, key, member, value)
  local of = all[key]
  if not of then of = {}; all[key] = of end
  of[member] = value
end
local function hset(key, field, value) note(hashes, key, field, value) end
local function hdel(key, field) note(hashes, key, field, false) end
local function zadd(key, score, id) note(sets, key, id, score) end
local function zrem(key, id) note(sets, key, id, false) end

local function count(name, n) counts[name] = (counts[name] or 0) + n end

-- pieces calls a command as often as its arguments need: unpack takes some thousands.
local function pieces(command, key, args)
  for i = 1, #args, 1000 do call(command, key, unpack(args, i, math.min(i + 999, #args))) end
end

local function flush()
  for key, of in pairs(hashes) do
    local put, p, gone, g = {}, 0, {}, 0
    for field, value in pairs(of) do
      if value then
        put[p + 1], put[p + 2] = field, value
        p = p + 2
      else
        g = g + 1
        gone[g] = field
      end
    end
    pieces('HSET', key, put)
    pieces('HDEL', key, gone)
  end
  local texts = {} -- to write a number down takes longer than to look it up, and most are the same
  for key, of in pairs(sets) do
    local put, p, gone, g = {}, 0, {}, 0
    for id, score in pairs(of) do
      if score then
        local text = texts[score]
        if not text then
          text = string.format('%.0f', score)
          texts[score] = text
        end
        put[p + 1], put[p + 2] = text, id
        p = p + 2
      else
        g = g + 1
        gone[g] = id
      end
    end
    pieces('ZADD', key, put)
    pieces('ZREM', key, gone)
  end
  for name, n in pairs(counts) do
    if n ~= 0 then call('HINCRBY', C, 'n:' .. name, n) end
  end
  hashes, sets, counts, read = {}, {}, {}, {}
end

local function hget(key, field)
  local of = hashes[key]
  if of and of[field] ~= nil then return of[field] end
  of = read[key]
  if of and of[field] ~= nil then return of[field] end
  return call('HGET', key, field)
end

-- zscore returns the score of id; 0 if it is not in the set.
local function zscore(key, id)
  local of = sets[key]
  if of and of[id] ~= nil then return of[id] or 0 end
  of = read[key]
  return of and of[id] or tonumber(call('ZSCORE', key, id) or '0')
end


-- meta is what is kept of the queue as a whole, beside its counters. done writes what
-- remember has changed.
local names, meta, changed = {'shift', 'step', 'gaps', 'token', 'settings', 'allowance', 'allowed_at', 'full', 'large', 'ahead'}, {}, {}
for i, value in ipairs(call('HMGET', C, unpack(names))) do meta[names[i]] = value end
local function remember(field, value)
  meta[field] = value
  changed[#changed + 1] = field
  changed[#changed + 1] = value
end
local function number(field) return tonumber(meta[field] or '0') end
local function pending(field) return meta[field] and meta[field] ~= '' end

-- stores notes that something of so many bytes is stored of a task: where much may be,
-- little is read ahead.
local FEW, LARGE = 50, 65536
local function stores(bytes)
  if bytes > LARGE and not meta.large then remember('large', 1) end
end

-- each calls f with the places of ids in a list, which are from, from + by and so on, until
-- it returns false. What is stored of the tasks has been read ahead.
local function each(list, from, by, f)
  local few = meta.large and 1 or FEW
  for first = from, #list, by * few do
    local last, ids = math.min(first + by * few - 1, #list), {}
    for i = first, last, by do ids[#ids + 1] = list[i] end
    for _, key in ipairs({P, S}) do
      read[key] = {}
      for i, value in ipairs(call('HMGET', key, unpack(ids))) do read[key][ids[i]] = value end
    end
    for i = first, last, by do
      if f(i) == false then return end
    end
  end
end

-- A lease is stored less shift, so that all follow a clock that was put back in one
-- write.
local shift = number('shift')

-- gaps returns the times in which no worker has called, those that may matter yet: the
-- length of each and when it was over. The later the shorter.
local function gaps()
  return meta.gaps and cmsgpack.unpack(meta.gaps) or {}
end

-- step notes that a worker has called. A gap is kept until there is one behind it that
-- was as long, or no lease is left that it may matter for: those are shorter than
-- three times the gap. So there are never many. Those below a millisecond do not count.
local function step()
  local last = number('step')
  remember('step', now)
  if last == 0 or now >= last and now - last < 1000 then return end
  local gap, back = now - last, 0
  if now < last then -- the clock was put back: leases end as long from now as before
    gap, back = last - now, last - now
    shift = shift - back
    remember('shift', shift)
    -- What was due before is looked at by the next claims: the class, from and to when. See recall.
    local to = pending('ahead') and cmsgpack.unpack(meta.ahead)[3] or 0
    remember('ahead', cmsgpack.pack({1, string.format('(%.0f', now), math.max(last, to)}))
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
  remember('gaps', cmsgpack.pack(kept))
end

local function has(t, flag) return bit.band(t.flags, flag) ~= 0 end
local function set(t, flag, on)
  if has(t, flag) ~= on then t.flags = t.flags + (on and flag or -flag) end
end
local function waits(t) return t.state == SCHEDULED or t.state == RETRYING end

-- header reads what this file has to know of an envelope. What most tasks do not
-- set takes no place in it: what says which follow.
local KEY, KEEP, EXPIRES, START, TIMED = 1, 2, 4, 8, 16
local function header(t, p)
  local what, at
  t.p = p
  t.enqueued, what, t.priority, t.maxFailures, t.maxCrashes, at = struct.unpack('>I7BBI2B', p)
  t.keep, t.expires, t.key, t.until_, t.timed = 0, 0, '', 0, false
  if what == 0 then return end
  local function follows(flag) return bit.band(what, flag) ~= 0 end
  t.until_ = follows(START) and 1 or 0
  t.timed = follows(TIMED)
  if follows(KEEP) then t.keep, at = struct.unpack('>I6', p, at) end
  if follows(EXPIRES) then t.expires, at = struct.unpack('>I7', p, at) end
  if follows(KEY) then
    local n
    n, at = struct.unpack('>I2', p, at)
    t.key = string.sub(p, at, at + n - 1)
  end
end

-- fresh makes t a task that has never been claimed, and returns it.
local function fresh(t, id)
  t.id, t.state, t.flags, t.token, t.settled, t.attempt, t.failures, t.crashes, t.releases = id, SCHEDULED, 0, 0, 0, 0, 0, 0, 0
  t.started, t.ended, t.due, t.length, t.worker, t.error, t.result, t.progress = 0, 0, 0, 0, '', '', '', ''
  return t
end

-- What has happened to a task is numbers, then texts, whose lengths are the last numbers.
local HAPPENED = '>BBI7I7I4I4I4I4I7I7I7I7I2I4I4I4'

-- happened reads what save has written.
local function happened(t, s)
  local at, worker, error, result, progress
  t.state, t.flags, t.token, t.settled, t.attempt, t.failures, t.crashes, t.releases, t.started, t.ended, t.due, t.length,
    worker, error, result, progress, at = struct.unpack(HAPPENED, s)
  local function text(n)
    at = at + n
    return string.sub(s, at - n, at - 1)
  end
  t.worker = text(worker)
  t.error = error > 0 and text(error) or ''
  t.result = result > 0 and text(result) or ''
  t.progress = progress > 0 and text(progress) or ''
end

-- one is the task that a step works on, where it works on one after the other: to make
-- a table with so many fields costs more than to fill it.
local one = {}

-- load returns what is known of a task; nil if that is nothing. It is in t, if that is
-- given.
local function load(id, t)
  local p = hget(P, id)
  if not p then return nil end
  t = t or {}
  header(t, p)
  local s = hget(S, id)
  if s then
    t.id = id
    happened(t, s)
  else
    fresh(t, id)
    if t.key ~= '' then t.flags = HOLDS end
    t.due = zscore(KEYS[8 - t.priority], id)
  end
  return t
end

local indexes = {[ENDED_DONE] = DONE, [ENDED_DEAD] = DEAD, [ENDED_CANCELLED] = CANCELLED}

-- heads are when the first task of a class was due, before this step: others know of it.
local heads = {}

-- index enters t in what finds it. It does not write the task itself.
local function index(t)
  if waits(t) then
    local due = KEYS[8 - t.priority]
    local first = heads[due]
    if not first then
      local head = call('ZRANGE', due, 0, 0, 'WITHSCORES')
      first = tonumber(head[2]) or math.huge
    end
    if t.due <= now then ready = ready + 1 elseif t.due < first then wake = true end
    first = math.min(first, t.due)
    heads[due] = first
    zadd(due, t.due, t.id)
    if t.state == RETRYING then zadd(RETRY, t.due, t.id) end
  elseif t.state == RUNNING then
    zadd(RUN, t.lease - shift, t.id)
  else
    zadd(indexes[t.state], t.ended, t.id)
    if t.state ~= ENDED_DEAD then zadd(FORGET, t.ended + math.max(t.keep, MINUTE), t.id) end
  end
  if has(t, HOLDS) then hset(U, t.key, t.id) end
end

-- size is what a task counts for MAX_BYTES.
local function size(t) return #t.p + #t.result + #t.progress end

-- save writes what has happened to t.
local function save(t)
  stores(#t.result + #t.progress)
  hset(S, t.id, struct.pack(HAPPENED, t.state, t.flags, t.token, t.settled, t.attempt, t.failures, t.crashes, t.releases,
    t.started, t.ended, t.due, t.length, #t.worker, #t.error, #t.result, #t.progress) .. t.worker .. t.error .. t.result .. t.progress)
end

-- lend gives t, which runs, a lease from now.
local function lend(t, lease)
  zadd(RUN, now + lease - shift, t.id)
  local changed = t.length ~= lease or has(t, SPARED)
  t.length = lease
  set(t, SPARED, false)
  return changed -- then it is to be saved
end

local function unindex(t)
  if waits(t) then
    zrem(KEYS[8 - t.priority], t.id)
    if t.state == RETRYING then zrem(RETRY, t.id) end
  elseif t.state == RUNNING then
    zrem(RUN, t.id)
  else
    zrem(indexes[t.state], t.id)
    if t.state ~= ENDED_DEAD then zrem(FORGET, t.id) end
  end
  if has(t, HOLDS) then hdel(U, t.key) end
end

local function forget(t)
  unindex(t)
  hdel(P, t.id)
  hdel(S, t.id)
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

-- orphan makes a dead letter of an id whose envelope is lost.
local function orphan(id)
  local t = fresh({}, id)
  header(t, struct.pack('>I7BBI2B', now, 0, 0, 0, 0))
  hset(P, id, t.p)
  t.due, t.error = now, 'the store had lost its record'
  bury(t)
  index(t)
  save(t)
end

-- holder returns the id of the task that holds a unique key; nil if none does. What is
-- noted of a task whose envelope is lost does not count.
local function holder(key)
  local id = hget(U, key)
  local t = id and load(id, {})
  if t and has(t, HOLDS) and t.key == key then return id end
end

-- fields returns t as Go reads it: the envelope, then numbers, then texts.
local function fields(t)
  local lease = 0
  if t.state == RUNNING then lease = zscore(RUN, t.id) + shift end
  return {t.id, t.p, t.state, t.token, t.attempt, t.failures, t.crashes, t.releases, t.flags,
    t.started, t.ended, t.due, lease, t.worker, t.error, t.result, t.progress}
end

-- add adds a task; delay is from now, unless at is not 0. It returns the verdict, and
-- the id of the task that holds the key if that is why it was not added.
local function add(id, envelope, delay, at)
  local p = struct.pack('>I7', now) .. envelope
  stores(#p)
  local t = fresh(one, id)
  header(t, p)
  if hget(P, id) then return 2 end
  if t.key ~= '' then
    local id = holder(t.key)
    if id then count('duplicate', 1); return 3, id end
    t.flags = HOLDS
  end
  t.due = now + delay
  if at > 0 then t.due = at end
  hset(P, id, p)
  index(t)
  count('added', 1)
  return 1
end

local function settings()
  if not meta.settings then return {} end
  return cjson.decode(meta.settings)
end

-- rouse wakes all that sleep, or some: by their names, and who has asked last first. Who has not
-- asked for long has ended.
local function rouse()
  if wake then
    call('PUBLISH', ARGV[1], '')
  elseif ready > 0 then
    local some, names = call('ZPOPMAX', SLEEP, math.min(ready, MAX_IDS)), {}
    for i = 1, #some, 2 do
      if now - tonumber(some[i + 1]) > 3 * SECOND then call('DEL', SLEEP); break end
      names[#names + 1] = some[i]
    end
    if #names > 0 then call('PUBLISH', ARGV[1], table.concat(names, ' ')) end
  end
end

local function done(answer)
  flush()
  if #changed > 0 then call('HSET', C, unpack(changed)) end
  rouse()
  return answer
end
