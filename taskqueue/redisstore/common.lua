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
--   22..25 waiting, edges, left, release: see after.lua
--   the last 4 are in limits.lua
-- ARGV[1] is the channel on which others hear that something is due earlier.
local RUN, RETRY, DEAD, DONE, CANCELLED, FORGET = KEYS[9], KEYS[10], KEYS[11], KEYS[12], KEYS[13], KEYS[14]
local P, S, U, N, C, T, SLEEP = KEYS[15], KEYS[16], KEYS[17], KEYS[18], KEYS[19], KEYS[20], KEYS[21]
local WAIT, EDGES, LEFT, RELEASE = KEYS[22], KEYS[23], KEYS[24], KEYS[25]
local SCHEDULED, RUNNING, RETRYING, ENDED_DONE, ENDED_DEAD, ENDED_CANCELLED = 1, 3, 4, 5, 6, 7
local HOLDS, REAPED, CANCEL, SPARED = 1, 2, 4, 8 -- flags
local WAITING = 8 -- a state, too
local PARENT = 128 -- a flag: others wait for it
local PARKED = 32 -- a limit keeps it; see limits.lua
local LASTS = 16 -- it does not expire any more: a handler has begun it, or it is to run again
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
local names, meta, changed = {'shift', 'step', 'gaps', 'token', 'settings', 'allowance', 'allowed_at', 'full', 'large', 'ahead', 'limits', 'releases', 'awaited'}, {}, {}
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
    call('DEL', KEYS[#KEYS - 1]) -- rates of limits are full, and their tasks looked at: see limits.lua
    call('ZUNIONSTORE', KEYS[#KEYS], 1, KEYS[#KEYS], 'WEIGHTS', 0)
    shift = shift - back
    remember('shift', shift)
    -- What was due before, or soon after, is looked at by the next claims: the class, from and to
    -- when, and how far it is moved. See recall.
    local to = math.max(last, pending('ahead') and cmsgpack.unpack(meta.ahead)[3] - MINUTE or 0)
    if to - now > SECOND then
      remember('ahead', cmsgpack.pack({1, string.format('(%.0f', now), to + MINUTE, to - now}))
    end
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
