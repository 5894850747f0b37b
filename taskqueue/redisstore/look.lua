-- ARGV: channel, what, then what that needs. It changes nothing, but for purge.
local what = ARGV[2]
local READY = 2
local after_now = string.format('(%.0f', now) -- .. would round it

-- page returns entries of a sorted set behind a cursor (score, id), up to max, with
-- scores from low to high.
local function page(key, low, high, score, id, max)
  if id ~= '' then
    local rank = call('ZRANK', key, id)
    if rank then
      local found = {}
      local all = call('ZRANGE', key, rank + 1, rank + max, 'WITHSCORES')
      for i = 1, #all, 2 do
        if high ~= '+inf' and tonumber(all[i + 1]) > tonumber(high) then break end
        found[#found + 1] = all[i]
        found[#found + 1] = all[i + 1]
      end
      return found
    end
    low = '(' .. score
  end
  return call('ZRANGEBYSCORE', key, low, high, 'WITHSCORES', 'LIMIT', 0, max)
end

if what == 'get' then
  local t = load(ARGV[3])
  if not t then return {now} end
  return {now, fields(t)}
end

if what == 'periodic' then
  local all, found = call('HGETALL', T), {}
  for i = 1, #all, 2 do
    local v = cmsgpack.unpack(all[i + 1])
    found[#found + 1] = {all[i], v[1], v[2]}
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
  return {late, waiting - ready - retrying, ready, call('ZCARD', RUN), retrying,
    call('ZCARD', DONE), call('ZCARD', DEAD), call('ZCARD', CANCELLED), call('HGETALL', C)}
end

-- list and purge: state, class of the cursor, its score, its id, max
local state, class, score, id, max = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5], ARGV[6], tonumber(ARGV[7])
local keys = {}
local low, high = '-inf', '+inf'
if state == RUNNING then keys = {RUN}
elseif state == RETRYING then keys, low = {RETRY}, after_now
elseif indexes[state] then keys = {indexes[state]}
else
  for i = 1, 8 do keys[i] = KEYS[i] end
  if state == READY then high = now else low = after_now end
end

local tasks, seen, more = {}, 0, {}
while class <= #keys and seen < 1000 and #tasks < max do
  local got = page(keys[class], low, high, score, id, math.min(max, 1000 - seen))
  for i = 1, #got, 2 do
    if #tasks == max then break end
    seen = seen + 1
    id, score = got[i], got[i + 1]
    local t = load(id)
    if t and (state ~= SCHEDULED or t.state == SCHEDULED) then tasks[#tasks + 1] = what == 'purge' and t or fields(t) end
  end
  more = {class, score, id}
  if #got / 2 < math.min(max, 1000 - seen + #got / 2) then
    class, score, id = class + 1, '', ''
    more = {class, '', ''}
  end
end
if what == 'purge' then
  for _, t in ipairs(tasks) do forget(t) end
  return #tasks
end
if more[1] and more[1] > #keys then more = {} end
return {now, tasks, more}
