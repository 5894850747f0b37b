-- What every step begins with. KEYS[1..8] are of one lock, in this order; all locks of
-- a part of a tenant are in one slot of a cluster.
--   1 r  the record, and s<slot> -> id of the lease that has the slot; a mutex has slot 0 alone
--   2 h  leases: id -> when it ends
--   3 q  requests that wait: id -> ticket
--   4 x  requests that wait: id -> when it is forgotten
--   5 e  leases and requests: id -> what is known of it
--   6 i  the keys of all locks of the part
--   7 f  the greatest fence of the locks of the part that were deleted
--   8 p  the keys of the records of the part that may go when nobody uses them: key -> when to look
-- ARGV[1] is the prefix of the channels on which processes hear that a request of
-- theirs may be granted, ARGV[2] the key of the lock.
-- Times are µs by the clock of the server. The rules are those of internal/book.
local R, H, Q, X, E, I, F, P = unpack(KEYS, 1, 8)
local MUTEX, SEMAPHORE, RW = 1, 2, 3
local call = redis.call
local clock = call('TIME')
local real = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local now = real

-- A number without an exponent: all of them are exact in a double.
local function str(n) return string.format('%.0f', n) end

local r -- the record, numbers as numbers; nil if there is none

-- For a record time never goes back, also if the clock was put back.
local function open()
  local got = call('HMGET', R, 'kind', 'size', 'fence', 'ticket', 'shut', 'busy', 'writers', 'barging', 'delete', 'updated_at')
  if got[1] then
    r = {kind = tonumber(got[1]), size = tonumber(got[2]), fence = tonumber(got[3]), ticket = tonumber(got[4]), shut = tonumber(got[5]),
      busy = tonumber(got[6]), writers = tonumber(got[7]), barging = tonumber(got[8] or '0'), delete = got[9] == '1'}
    now = math.max(now, tonumber(got[10]))
  end
end

local function save(field, value)
  r[field] = value
  call('HSET', R, field, str(value))
end

local function entry(id)
  local packed = call('HGET', E, id)
  return packed and cmsgpack.unpack(packed)
end

local function put(id, e) call('HSET', E, id, cmsgpack.pack(e)) end

-- release takes away a lease.
local function release(id, e)
  call('ZREM', H, id)
  call('HDEL', E, id)
  if r.kind ~= MUTEX then call('HDEL', R, 's' .. str(e.slot)) end
  save('busy', r.busy - e.permits)
  if r.kind == RW and not e.shared then save('writers', r.writers - 1) end
end

-- withdraw takes away a request that waits. It says whether there was one.
local function withdraw(id)
  if call('ZREM', Q, id) == 0 then return false end
  call('ZREM', X, id)
  if r.barging > 0 and entry(id).barging then save('barging', r.barging - 1) end
  call('HDEL', E, id)
  return true
end

-- reap takes away what has ended. A lease that expires may shut the lock for a while.
local function reap()
  for _, id in ipairs(call('ZRANGEBYSCORE', H, '-inf', str(now))) do
    local e, ends = entry(id), tonumber(call('ZSCORE', H, id))
    if e.delay > 0 and ends + e.delay > r.shut then save('shut', ends + e.delay) end
    release(id, e)
  end
  for _, id in ipairs(call('ZRANGEBYSCORE', X, '-inf', str(now))) do withdraw(id) end
end

-- writerBefore says whether one of the first n requests that wait is a writer.
local function writerBefore(n)
  for from = 0, n - 1, 50 do
    for _, id in ipairs(call('ZRANGE', Q, from, math.min(from + 49, n - 1))) do
      if not entry(id).shared then return true end
    end
  end
  return false
end

-- fits says whether a request may be granted, which rank others wait before, and else
-- whether only the size that it names is in the way. Who waits earlier has its place kept.
-- Each wants a permit at least, so no more of them are looked at than there is room for.
local function fits(e, rank)
  if now < r.shut then return false end
  if e.barging then rank = 0 end
  if r.kind == RW then
    if e.shared then return r.writers == 0 and not writerBefore(rank) end
    return r.busy == 0 and rank == 0
  end
  local room = r.size - r.busy - e.permits
  if rank > room then return false end
  if rank > 0 then
    for _, id in ipairs(call('ZRANGE', Q, 0, rank - 1)) do room = room - entry(id).permits end
  end
  return room >= 0 and room >= r.size - (e.most or r.size), room >= 0
end

-- wake tells the processes whose requests could be granted now. A user who may not do so has
-- written by then, so that is no error: they ask again soon anyway. Behind the first that does
-- not fit only those that may pass it are of interest, and all are looked at if there are any.
local function wake(key)
  if not r then return end
  local told, most = {}, r.kind == RW and 50 or r.size - r.busy
  if most <= 0 or now < r.shut then return end
  local blocked = false
  for rank, id in ipairs(call('ZRANGE', Q, 0, r.barging > 0 and -1 or most - 1)) do
    local e = entry(id)
    blocked = blocked or rank > most
    local fit, small = false, false
    if not blocked or e.barging then fit, small = fits(e, rank - 1) end
    if fit then
      if not told[e.client] then
        told[e.client] = true
        redis.pcall('PUBLISH', ARGV[1] .. e.client, key or ARGV[2])
      end
    elseif not small then
      if r.barging == 0 then break end
      blocked = true
    end
  end
end

-- forget deletes the record. Its fence is kept, for one that is made again.
local function forget(key)
  if r.fence > tonumber(call('GET', F) or '0') then call('SET', F, str(r.fence)) end
  call('DEL', R, H, Q, X, E)
  call('ZREM', I, key or ARGV[2])
  call('ZREM', P, key or ARGV[2])
  r = nil
end

-- keep has the record stay until it is deleted.
local function keep(key)
  call('HDEL', R, 'retention')
  call('ZREM', P, key or ARGV[2])
end

-- purge deletes the open record if nobody has used it for as long as it is kept, or says
-- when to look again.
local function purge(key)
  local got = call('HMGET', R, 'retention', 'updated_at')
  local retention = tonumber(got[1] or '0')
  if retention == 0 or call('HEXISTS', R, 'data') == 1 then return keep(key) end
  local due = tonumber(got[2]) + retention
  if r.busy > 0 or call('ZCARD', Q) > 0 or now < r.shut then due = math.max(now, r.shut) + retention end
  if now < due then
    call('ZADD', P, str(due), key)
    return wake(key)
  end
  forget(key)
  return true
end

-- tidy looks at records of the part that were due by a time, and says at how many and how many went.
local function tidy(most, last)
  local mine, gone = {R, H, Q, X, E, r, now}, 0
  local keys = call('ZRANGEBYSCORE', P, '-inf', str(last), 'LIMIT', 0, most)
  for _, key in ipairs(keys) do
    local all = string.sub(I, 1, -3) .. ':' .. string.gsub(key, '[^%w%-%._/]', function(c) return string.format('%%%02X', string.byte(c)) end) .. ':'
    R, H, Q, X, E = all .. 'r', all .. 'h', all .. 'q', all .. 'x', all .. 'e'
    r, now = nil, real
    open()
    if r then reap() else call('ZREM', P, key) end
    if r and purge(key) then gone = gone + 1 end
  end
  R, H, Q, X, E, r, now = unpack(mine, 1, 7)
  return #keys, gone
end

-- make makes the record, and has others go. fields are names and values.
local function make(kind, size, retention, fields)
  local floor = tonumber(call('GET', F) or '0')
  r = {kind = kind, size = size, fence = floor, ticket = 0, shut = 0, busy = 0, writers = 0, barging = 0}
  call('HSET', R, 'kind', kind, 'size', size, 'fence', str(floor), 'ticket', 0, 'shut', 0, 'busy', 0, 'writers', 0,
    'created_at', str(now), 'updated_at', str(now), unpack(fields))
  call('ZADD', I, 0, ARGV[2])
  tidy(2, real)
  if retention == 0 then return end
  call('HSET', R, 'retention', str(retention))
  call('ZADD', P, str(now + retention), ARGV[2])
end

-- alone says whether nobody waits, not even one who may have been forgotten since.
local function alone() return call('ZCARD', Q) == 0 end

local function touched(owner) call('HSET', R, 'updated_by', owner, 'updated_at', str(now)) end

-- grant is a lease as Go reads it: one string, for each in a list costs both sides time.
local function grant(id, e, ends)
  return string.format('%d %d %.0f %d %d %d %d %.0f %.0f %.0f|', #id, #e.version, e.fence, e.slot, e.permits, e.shared and 1 or 0,
    e.revoked and 1 or 0, e.lease, e.acquired, ends) .. id .. e.version .. e.owner
end

-- find returns the lease that an ID or a version means; of an ID also a request that waits.
local function find(id, version)
  if id ~= '' then return id, entry(id) end
  if version == '' then return end
  for _, held in ipairs(call('ZRANGE', H, 0, -1)) do
    local e = entry(held)
    if e.version == version or e.prev == version then return held, e end
  end
end

-- shown is the record as Go reads it, with its holders if they are wanted.
local function shown(all)
  local fields = call('HMGET', R, 'lease', 'fair', 'delete', 'delay', 'version', 'created_by', 'created_at', 'updated_by', 'updated_at', 'data')
  local holders = {}
  if all or r.kind == MUTEX then
    for _, id in ipairs(call('ZRANGE', H, 0, -1)) do
      holders[#holders + 1] = grant('', entry(id), tonumber(call('ZSCORE', H, id)))
    end
  end
  return {str(r.kind), str(r.size), str(r.fence), str(r.busy), str(call('ZCARD', Q)), fields, holders}
end
