-- How a task waits for others, its parents, and is told when they have ended; behind tasks.lua.
--   waiting  id of a task that waits -> 0
--   edges    for each of its parents: parent, a zero byte, what is to be done if that fails (r: run,
--            s: skip, w: wait), its id. No id has a zero byte.
--   left     its id -> how many of its parents are not done
--   release  a parent that has ended and has not told all yet -> its state, 0 if it was deleted
-- A parent has a flag. Where one was forgotten some may wait for a task of its id: then meta.awaited is
-- set, and each that is added looks for them.

local function edge(t, parent) return parent .. '\0' .. t.onFailed .. t.id end

-- children returns some edges of a parent, those from mode from on, and below mode to.
local function children(parent, from, to, max)
  return call('ZRANGEBYLEX', EDGES, '[' .. parent .. '\0' .. from, '(' .. parent .. '\0' .. to, 'LIMIT', 0, max)
end

readAfter = function(t, p, at)
  local n
  t.onFailed, n, at = struct.unpack('>c1B', p, at)
  t.after = {}
  for i = 1, n do
    local size
    size, at = struct.unpack('>I2', p, at)
    t.after[i] = string.sub(p, at, at + size - 1)
    at = at + size
  end
  return at
end

-- holdsBack reports whether a task is not to run, a parent having ended so.
local function holdsBack(onFailed, state) return state ~= ENDED_DONE and onFailed ~= 'r' end

-- link has t, which is being added, wait for those of its parents that it has to wait for.
link = function(t)
  local left = 0
  for _, parent in ipairs(t.after) do
    local p = load(parent, {})
    if not indexes[p.state] or holdsBack(t.onFailed, p.state) then
      left = left + 1
      call('ZADD', EDGES, 0, edge(t, parent))
      if not has(p, PARENT) then
        set(p, PARENT, true)
        save(p)
      end
      if indexes[p.state] and t.onFailed == 's' then ended[#ended + 1] = {parent, p.state} end
    end
  end
  if left > 0 then
    t.state = WAITING
    hset(LEFT, t.id, left)
  end
end

-- unlink has t wait for nothing any more. It is for the caller to move it to another state.
unlink = function(t)
  for _, parent in ipairs(t.after) do call('ZREM', EDGES, edge(t, parent)) end
  hdel(LEFT, t.id)
end

-- awaited reports whether some wait for a task of this id, which is being added.
awaited = function(id)
  if call('EXISTS', EDGES) == 0 then
    remember('awaited', '')
    return false
  end
  return #children(id, '', '\255', 1) > 0
end

local became = {[0] = 'was deleted', [ENDED_DEAD] = 'is dead', [ENDED_CANCELLED] = 'was cancelled'}

-- tell tells one child that a parent has ended. It returns how much room that has taken.
local function tell(parent, state, member)
  local onFailed, id = string.sub(member, #parent + 2, #parent + 2), string.sub(member, #parent + 3)
  local t = load(id, one)
  call('ZREM', EDGES, member)
  if not t then -- its record is lost
    zrem(WAIT, id)
    hdel(LEFT, id)
    orphan(id)
    return 1
  end
  if t.state ~= WAITING then return 1 end
  if holdsBack(onFailed, state) then
    unlink(t)
    change(t, function()
      t.error = 'task "' .. parent .. '", after which it was to run, ' .. became[state]
      cancelled(t)
    end)
    return 1 + #t.after
  end
  local left = tonumber(hget(LEFT, id) or '1') - 1
  if left > 0 then hset(LEFT, id, left); return 1 end
  hdel(LEFT, id)
  change(t, function() t.state, t.due = SCHEDULED, math.max(t.due, now) end)
  if not has(t, PARENT) then hdel(S, id) end -- it is as one that was just added
  return 1
end

-- release tells the children of what has ended, in this step or before: some at a time. What is cancelled by
-- that has ended, too.
release = function()
  if pending('releases') then
    local some = call('ZRANGE', RELEASE, 0, 99, 'WITHSCORES')
    for i = 1, #some, 2 do
      ended[#ended + 1] = {some[i], tonumber(some[i + 1])}
      call('ZREM', RELEASE, some[i])
    end
  end
  local room, i = MAX_IDS, 1
  while i <= #ended do
    local parent, state = ended[i][1], ended[i][2]
    local some = {}
    if room > 0 then some = children(parent, '', state == ENDED_DONE and '\255' or 'w', room) end
    for _, member in ipairs(some) do
      if room <= 0 then break end
      room = room - tell(parent, state, member)
    end
    if room <= 0 then call('ZADD', RELEASE, state, parent) end -- there may be more
    i = i + 1
  end
  for k = 1, #ended do ended[k] = nil end
  flush()
  local more = call('EXISTS', RELEASE) == 1
  if more or pending('releases') then remember('releases', more and 1 or '') end
end
