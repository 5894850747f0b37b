-- Limits of keys and of types, behind tasks.lua. A task that is under one, and that it keeps, is
-- parked: it is in LIMITED, and not where claims look for what is due. It has then the version of
-- the limits and the name of its group in t.group; while it runs, the name alone. A claim that finds
-- its group in WAKES has it wait at its place again. See keylimits.go of package sqlstore.
--   limited  version, group, zero byte, class, due, id: score 0
--   held     group -> leases
--   pace     group -> when its rate is full again
--   wakes    group -> when claims are to look at what is parked of it
-- They are the last of the keys; tasks.lua has LIMITED.
local HELD, PACE, WAKES = KEYS[#KEYS - 2], KEYS[#KEYS - 1], KEYS[#KEYS]

-- limitsOf returns the limits by what they are for; nil if there never were any.
local function limitsOf()
  if not pending('limits') then return nil end
  local text = cjson.decode(meta.limits)
  local all = {prefix = string.format('%08x', text.version), keys = {}, types = {}, beginnings = {}}
  for _, l in ipairs(type(text.limits) == 'table' and text.limits or {}) do
    all.any = true
    if l.type then all.types[l.type] = l
    elseif string.sub(l.key, -1) == '*' then
      l.beginning = string.sub(l.key, 1, -2)
      table.insert(all.beginnings, l)
    else all.keys[l.key] = l end
  end
  table.sort(all.beginnings, function(a, b) return #a.beginning > #b.beginning end)
  return all
end

local function limitOfKey(all, key)
  if key == '' then return nil end
  if all.keys[key] then return all.keys[key] end
  for _, l in ipairs(all.beginnings) do
    if string.sub(key, 1, #l.beginning) == l.beginning then return l end
  end
end

-- limitOf returns the limit that t is under, and its group; nil if there is none.
local function limitOf(all, t)
  local l = limitOfKey(all, t.limitKey)
  if l then return l, 'k' .. t.limitKey end
  local kind = typeOf(t)
  return all.types[kind], 't' .. kind
end

-- limitOfGroup returns the limit of a group; nil if there is none any more.
local function limitOfGroup(all, group)
  local name = string.sub(group, 2)
  if string.sub(group, 1, 1) == 't' then return all.types[name] end
  return limitOfKey(all, name)
end

local runs, fullAt = {}, {} -- of groups, as this step has made them
local function running(group)
  runs[group] = runs[group] or tonumber(call('HGET', HELD, group) or '0') + (held[group] or 0)
  return runs[group]
end
local function rated(group)
  fullAt[group] = fullAt[group] or tonumber(call('ZSCORE', PACE, group) or '0')
  return fullAt[group]
end

-- roomIn returns how many tasks of a group may begin, and when the rate lets one begin, if it is the
-- rate that keeps it.
local function roomIn(l, group)
  local n = math.huge
  if (l.concurrency or 0) > 0 then n = math.max(l.concurrency - running(group), 0) end
  if (l.rate or 0) == 0 or n == 0 then return n end
  local span, burst = SECOND / l.rate, math.max(l.burst or 1, 1)
  local used = math.min(math.max(rated(group) - now, 0) / span, burst)
  local allowed = math.floor(burst - used + math.min(0.1, 2 / span)) -- two µs, since none is exact
  if allowed < 1 then return 0, math.ceil(now + (used - burst + 1) * span) end
  return math.min(n, allowed)
end

local wakeAt, spent = {}, {} -- group -> when; group -> its rate was used

-- admit counts t, which begins now, with its group. It returns false if there is no room.
local function admit(all, t)
  local l, group = limitOf(all, t)
  if not l then return true end
  local n, at = roomIn(l, group)
  if n < 1 then
    wakeAt[group] = at or wakeAt[group]
    return false
  end
  t.group = group
  runs[group] = running(group) + 1
  held[group] = (held[group] or 0) + 1
  if (l.rate or 0) > 0 then
    local span = SECOND / l.rate
    fullAt[group] = math.min(math.max(rated(group), now), now + span * (math.max(l.burst or 1, 1) - 1)) + span
    spent[group] = true
  end
  return true
end

-- park has claims not see t until there is room in its group.
local function park(all, t)
  local _, group = limitOf(all, t)
  unindex(t)
  set(t, PARKED, true)
  t.group = all.prefix .. group
  index(t)
  save(t)
end

-- unpark has the tasks of members of LIMITED wait at their places again.
local function unpark(members)
  local ids, of = {}, {}
  for i, m in ipairs(members) do
    ids[i] = parkedID(m)
    of[ids[i]] = m
  end
  each(ids, 1, 1, function(i)
    local t = load(ids[i], one)
    if t and has(t, PARKED) then change(t, function() end) -- unindex has it not be parked
    else
      zrem(LIMITED, of[ids[i]])
      if not t then orphan(ids[i]) end
    end
  end)
  flush()
end

-- parkedIn returns the first members of a group.
local function parkedIn(all, group, n)
  local first = all.prefix .. group
  return call('ZRANGEBYLEX', LIMITED, '[' .. first .. '\0', '(' .. first .. '\1', 'LIMIT', 0, n)
end

-- bringBack has parked tasks wait at their places again: those of another version of the limits, and
-- the first of each group that has a wake, which stays if the claim may begin nothing. It returns the groups
-- that have more, and whether there may be more of another version.
local function bringBack(all, begins)
  local stale = call('ZRANGEBYLEX', LIMITED, '-', '(' .. all.prefix, 'LIMIT', 0, MAX_IDS)
  unpark(stale)
  local room, open = MAX_IDS - #stale, {}
  local full = call('ZRANGEBYSCORE', PACE, '-inf', now, 'LIMIT', 0, MAX_IDS)
  if #full > 0 then call('ZREM', PACE, unpack(full)) end
  if not begins then return open, #stale == MAX_IDS end
  local due = call('ZRANGEBYSCORE', WAKES, '-inf', now, 'LIMIT', 0, MAX_IDS)
  if #due > 0 then call('ZREM', WAKES, unpack(due)) end
  for group in pairs(freed) do due[#due + 1] = group end
  freed = {}
  for _, group in ipairs(due) do
    local l = limitOfGroup(all, group)
    if l then
      local n = math.min(roomIn(l, group), room)
      if n > 0 then
        local some = parkedIn(all, group, n)
        room = room - #some
        unpark(some)
      end
      if #parkedIn(all, group, 1) > 0 then open[group] = l end
    end
  end
  return open, #stale == MAX_IDS
end

-- noteLimits writes what a claim has changed, and returns when the first wake is; nil if there is none.
local function noteLimits(open)
  for group, l in pairs(open) do
    local n, at = roomIn(l, group)
    if n > 0 then wakeAt[group] = now elseif at then wakeAt[group] = at end
  end
  for group in pairs(spent) do call('ZADD', PACE, string.format('%.17g', fullAt[group]), group) end
  for group, at in pairs(wakeAt) do call('ZADD', WAKES, string.format('%.0f', at), group) end
  local first = call('ZRANGE', WAKES, 0, 0, 'WITHSCORES')
  return first[1] and tonumber(first[2])
end

-- leaveWakes has claims look at the groups in which this step has ended leases.
local function leaveWakes()
  if not next(freed) or not pending('limits') then return end
  local all = {prefix = string.format('%08x', cjson.decode(meta.limits).version)}
  for group in pairs(freed) do
    if #parkedIn(all, group, 1) > 0 then
      call('ZADD', WAKES, 0, group)
      ready = ready + 1
    end
  end
end
local finish_ = done
done = function(answer)
  flush()
  leaveWakes()
  for group, n in pairs(held) do
    if n ~= 0 and call('HINCRBY', HELD, group, n) < 1 then call('HDEL', HELD, group) end
  end
  return finish_(answer)
end
