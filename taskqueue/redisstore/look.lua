-- ARGV: channel, what, then what that needs. It changes nothing, but for purge.
local what = ARGV[2]
local READY = 2
local after_now = string.format("(%.0f", now) -- .. would round it

local back = ARGV[8] == '1' -- from high to low

-- less compares as sorted sets do: byte by byte, whatever the locale.
local function less(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x < y end
  end
  return #a < #b
end

-- rank returns how many entries of a sorted set stand before (score, id), which may have
-- gone or moved, and whether it is there.
local function rank(key, score, id)
  if call('ZSCORE', key, id) == score then return call('ZRANK', key, id), true end
  local low = call('ZCOUNT', key, '-inf', '(' .. score)
  local high = low + call('ZCOUNT', key, score, score)
  while low < high do
    local mid = math.floor((low + high) / 2)
    if less(call('ZRANGE', key, mid, mid)[1], id) then low = mid + 1 else high = mid end
  end
  return low, false
end

-- page returns up to max entries of a sorted set behind a cursor (score, id), with their
-- scores: those that are due (READY), those that are not (later), or all.
local function page(key, due, later, score, id, max)
  local first, last = 0, call('ZCARD', key) - 1
  if due then last = call('ZCOUNT', key, '-inf', now) - 1 end
  if later then first = call('ZCOUNT', key, '-inf', now) end
  if id ~= '' then
    local before, there = rank(key, score, id)
    if back then last = math.min(last, before - 1)
    else first = math.max(first, before + (there and 1 or 0)) end
  end
  if back then first = math.max(first, last - max + 1) else last = math.min(last, first + max - 1) end
  if first > last then return {} end
  local got = call('ZRANGE', key, first, last, 'WITHSCORES')
  if not back then return got end
  local turned = {}
  for i = #got - 1, 1, -2 do
    turned[#turned + 1] = got[i]
    turned[#turned + 1] = got[i + 1]
  end
  return turned
end

if what == 'get' then
  local t = load(ARGV[3])
  if not t then return {now} end
  return {now, fields(t)}
end

if what == 'settings' then return call('HGET', C, ARGV[3]) or '' end

if what == 'periodic' then
  local all, found = call('HGETALL', T), {}
  for i = 1, #all, 2 do
    local v = cmsgpack.unpack(all[i + 1])
    found[#found + 1] = {all[i], v[1], v[2], v[3] or 0}
  end
  return found
end

if what == 'stats' then
  local ready, waiting, late = 0, 0, 0
  for class = 1, 8 do
    waiting = waiting + call('ZCARD', KEYS[class])
    ready = ready + call('ZCOUNT', KEYS[class], '-inf', now)
    local head = call('ZRANGE', KEYS[class], 0, 0, 'WITHSCORES')
    if head[1] then late = math.max(late, now - tonumber(head[2])) end
  end
  local retrying = call('ZCOUNT', RETRY, after_now, '+inf')
  local limited, of = call('ZCARD', LIMITED), call('HGETALL', C)
  of[#of + 1] = 'limited'
  of[#of + 1] = tostring(limited)
  return {late, waiting - ready - retrying, ready + limited, call('ZCARD', RUN), retrying,
    call('ZCARD', DONE), call('ZCARD', DEAD), call('ZCARD', CANCELLED), of, call('ZCARD', WAIT)}
end

-- list and purge: state, class of the cursor, its score, its id, max, and for list 1 for
-- the inverse order
local state, class, score, id, max = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5], ARGV[6], tonumber(ARGV[7])
local purge = what == 'purge'
local keys = {}
if state == RUNNING then keys = {RUN}
elseif state == RETRYING then keys = {RETRY}
elseif indexes[state] then keys = {indexes[state]}
elseif state == WAITING then keys = {WAIT}
else
  for i = 1, 8 do keys[i] = KEYS[i] end
  if state == READY then keys[9] = LIMITED end
end

-- What is purged is deleted at the end, and the cursor of a purge is what stays.
local tasks, gone, seen, bytes = {}, {}, 0, 0
local more, stays = {}, {class, score, id}
while class <= #keys and seen < MAX_IDS and #tasks < max and bytes < MAX_BYTES do
  local key = keys[back and #keys + 1 - class or class]
  local most = math.min(max, MAX_IDS - seen)
  local got = page(key, state == READY, state == SCHEDULED or state == RETRYING, score, id, most)
  local short = #got / 2 < most
  for i = 1, #got, 2 do
    if #tasks == max or bytes >= MAX_BYTES then short = false; break end
    seen = seen + 1
    id, score = got[i], got[i + 1]
    local t = load(key == LIMITED and parkedID(id) or id)
    if t and (state ~= SCHEDULED or t.state == SCHEDULED) then
      tasks[#tasks + 1] = purge and t or fields(t)
      bytes = bytes + size(t)
    elseif purge and not t and (indexes[state] or state == WAITING) then gone[#gone + 1] = id
    else stays = {class, score, id} end
  end
  more = {class, score, id}
  if short then
    class, score, id = class + 1, '', ''
    more, stays = {class, '', ''}, {class, '', ''}
  end
end
if more[1] and more[1] > #keys then more, stays = {}, {} end
if purge then
  for _, t in ipairs(tasks) do forget(t) end
  for _, id in ipairs(gone) do zrem(keys[1], id); hdel(S, id) end
  return done({#tasks + #gone, stays})
end
return {now, tasks, more}
