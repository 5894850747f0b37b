-- ARGV: channel, what, then what that needs. It changes nothing, but for purge.
local what = ARGV[2]
local READY = 2
local after_now = string.format('(%.0f', now) -- .. would round it

local back = ARGV[8] == '1' -- from high to low
local RANK, RANGE, BYSCORE = 'ZRANK', 'ZRANGE', 'ZRANGEBYSCORE'
if back then RANK, RANGE, BYSCORE = 'ZREVRANK', 'ZREVRANGE', 'ZREVRANGEBYSCORE' end

-- page returns entries of a sorted set behind a cursor (score, id), up to max, with
-- scores from low to high. Of low and high one is a number, and the other has no end.
local function page(key, low, high, score, id, max)
  if id ~= '' then
    local rank = call(RANK, key, id)
    if rank then
      local found = {}
      local all = call(RANGE, key, rank + 1, rank + max, 'WITHSCORES')
      for i = 1, #all, 2 do
        local at = tonumber(all[i + 1])
        if back and low ~= '-inf' and at <= now or not back and high ~= '+inf' and at > now then break end
        found[#found + 1] = all[i]
        found[#found + 1] = all[i + 1]
      end
      return found
    end
    if back then high = '(' .. score else low = '(' .. score end
  end
  if back then low, high = high, low end
  return call(BYSCORE, key, low, high, 'WITHSCORES', 'LIMIT', 0, max)
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

-- list and purge: state, class of the cursor, its score, its id, max, and for list 1 for
-- the inverse order
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

local tasks, seen, more, size, full = {}, 0, {}, 0, 4194304
while class <= #keys and seen < 1000 and #tasks < max and size < full do
  local got = page(keys[back and #keys + 1 - class or class], low, high, score, id, math.min(max, 1000 - seen))
  local short = #got / 2 < math.min(max, 1000 - seen)
  for i = 1, #got, 2 do
    if #tasks == max or size >= full then short = false; break end
    seen = seen + 1
    id, score = got[i], got[i + 1]
    local t = load(id)
    if t and (state ~= SCHEDULED or t.state == SCHEDULED) then
      tasks[#tasks + 1] = what == 'purge' and t or fields(t)
      size = size + #t.p + #t.result + #t.progress
    end
  end
  more = {class, score, id}
  if short then
    class, score, id = class + 1, '', ''
    more = {class, '', ''}
  end
end
if what == 'purge' then
  for _, t in ipairs(tasks) do forget(t) end
  return done(#tasks)
end
if more[1] and more[1] > #keys then more = {} end
return {now, tasks, more}
