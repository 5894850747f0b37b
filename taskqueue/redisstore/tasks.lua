-- How a step reads a task, changes it and writes it, behind common.lua.

local function has(t, flag) return bit.band(t.flags, flag) ~= 0 end
local function set(t, flag, on)
  if has(t, flag) ~= on then t.flags = t.flags + (on and flag or -flag) end
end
local function waits(t) return t.state == SCHEDULED or t.state == RETRYING end

-- header reads what this file has to know of an envelope. What most tasks do not
-- set takes no place in it: what says which follow.
local KEY, KEEP, EXPIRES, START, TIMED, LIMIT_KEY, AFTER = 1, 2, 4, 8, 16, 32, 64
local readAfter, link, unlink, awaited, release -- see after.lua
local function header(t, p)
  local what, at
  t.p = p
  t.enqueued, what, t.priority, t.maxFailures, t.maxCrashes, at = struct.unpack('>I7BBI2B', p)
  t.keep, t.expires, t.key, t.until_, t.timed, t.limitKey, t.after, t.at = 0, 0, '', 0, false, '', nil, at
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
    at = at + n
  end
  if follows(LIMIT_KEY) then
    local n
    n, at = struct.unpack('>I2', p, at)
    t.limitKey = string.sub(p, at, at + n - 1)
    at = at + n
  end
  if follows(AFTER) then at = readAfter(t, p, at) end
  t.at = at
end

-- typeOf returns the type of a task, which follows the header with its length before it, as a varint.
local function typeOf(t)
  local low, high = string.byte(t.p, t.at, t.at + 1)
  if not low then return '' end -- the envelope was lost
  if low < 128 then return string.sub(t.p, t.at + 1, t.at + low) end
  return string.sub(t.p, t.at + 2, t.at + 1 + low - 128 + 128 * high)
end

-- fresh makes t a task that has never been claimed, and returns it.
local function fresh(t, id)
  t.id, t.state, t.flags, t.token, t.settled, t.attempt, t.failures, t.crashes, t.releases = id, SCHEDULED, 0, 0, 0, 0, 0, 0, 0
  t.started, t.ended, t.due, t.length, t.worker, t.error, t.result, t.progress, t.group = 0, 0, 0, 0, '', '', '', '', ''
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
  t.group = string.sub(s, at) -- of a limit
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

local LIMITED = KEYS[#KEYS - 3] -- see limits.lua
local held, freed = {}, {} -- group -> leases given, less those ended; group -> some were ended

-- parkedAs is the member of LIMITED for a task, and parkedID the id of a member.
local function parkedAs(t) return t.group .. '\0' .. (7 - t.priority) .. string.format('%016.0f', t.due) .. t.id end
local function parkedID(member) return string.sub(member, string.find(member, '\0', 1, true) + 18) end

-- heads are when the first task of a class was due, before this step: others know of it.
local heads = {}

-- index enters t in what finds it. It does not write the task itself.
local function index(t)
  if has(t, PARKED) then
    zadd(LIMITED, 0, parkedAs(t))
  elseif waits(t) then
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
  elseif t.state == WAITING then
    zadd(WAIT, 0, t.id)
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
    t.started, t.ended, t.due, t.length, #t.worker, #t.error, #t.result, #t.progress) .. t.worker .. t.error .. t.result .. t.progress .. t.group)
end

-- lend gives t, which runs, a lease from now.
local function lend(t, lease)
  zadd(RUN, now + lease - shift, t.id)
  local changed = t.length ~= lease or has(t, SPARED)
  t.length = lease
  set(t, SPARED, false)
  return changed -- then it is to be saved
end

-- depart counts t, which has run, no more with its group.
local function depart(t)
  if t.group == '' then return end
  held[t.group] = (held[t.group] or 0) - 1
  freed[t.group] = true
  t.group = ''
end

local function unindex(t)
  if has(t, PARKED) then
    zrem(LIMITED, parkedAs(t))
    set(t, PARKED, false)
    t.group = ''
  elseif waits(t) then
    zrem(KEYS[8 - t.priority], t.id)
    if t.state == RETRYING then zrem(RETRY, t.id) end
  elseif t.state == RUNNING then
    zrem(RUN, t.id)
    depart(t)
  elseif t.state == WAITING then
    zrem(WAIT, t.id)
  else
    zrem(indexes[t.state], t.id)
    if t.state ~= ENDED_DEAD then zrem(FORGET, t.id) end
  end
  if has(t, HOLDS) then hdel(U, t.key) end
end

local ended = {} -- tasks that have ended in this step and that others wait for: id, state or 0
local function forget(t)
  if t.state == WAITING then unlink(t) end
  if has(t, PARENT) then
    if not indexes[t.state] then ended[#ended + 1] = {t.id, 0} end
    remember('awaited', 1)
  end
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
  if has(t, PARENT) then ended[#ended + 1] = {t.id, state} end
end

local dead = {} -- what this step has made dead letters
local function bury(t) over(t, ENDED_DEAD); count('dead', 1); dead[#dead + 1] = t.id end
local function cancelled(t) over(t, ENDED_CANCELLED); count('cancelled', 1) end
local function wait(t, state, after) t.state, t.due = state, now + after end

-- orphan makes a dead letter of an id whose envelope is lost.
local function orphan(id)
  local t, s = {}, hget(S, id)
  if s then happened(t, s) end
  if t.state == RUNNING then depart(t) end
  fresh(t, id)
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
    t.started, t.ended, t.due, lease, t.worker, t.error, t.result, t.progress, t.group}
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
  if t.after then link(t) end
  if pending('awaited') and awaited(id) then set(t, PARENT, true) end
  index(t)
  if t.state == WAITING or has(t, PARENT) then save(t) end
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
  if #ended > 0 then release() end
  flush()
  if #changed > 0 then call('HSET', C, unpack(changed)) end
  rouse()
  return answer
end
