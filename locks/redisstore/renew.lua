-- KEYS: the first five for each lease. ARGV: channels, then 6 for each: key, id, version, lease,
-- new version, and '' or '=' followed by data.
-- One step renews many leases, each of a lock of its own.
local results = {}

-- quick renews a lease of a mutex by its ID, if it lasts and is not revoked. Those who
-- wait stay as they are: what is not free is nothing to them.
local function quick(id, lease, data)
  local e = entry(id)
  if not e or not e.mutex or e.revoked then return end
  now = math.max(now, e.acquired)
  local ends = tonumber(call('ZSCORE', H, id) or '0')
  if ends <= now then return end
  if now + lease > ends then
    ends = now + lease
    call('ZADD', H, str(ends), id)
  end
  if e.lease ~= lease then
    e.lease = lease
    put(id, e)
  end
  call('HSET', R, 'updated_by', e.owner, 'updated_at', str(now))
  if data ~= '' then call('HSET', R, 'data', string.sub(data, 2)) end
  return grant(id, e, ends)
end

local function byTheBook(id, version, lease, anew, data, key)
  now, r = real, nil
  open()
  if not r then return 'gone' end
  reap()
  local result = 'gone'
  local id, e = find(id, version)
  local ends = e and tonumber(call('ZSCORE', H, id) or '0') or 0
  if ends > 0 and e.revoked then
    result = 'revoked'
  elseif ends > 0 then
    ends = math.max(ends, now + lease)
    call('ZADD', H, str(ends), id)
    local changes = anew ~= '' and anew ~= e.version
    if changes then e.prev, e.version = e.version, anew end
    if changes or e.lease ~= lease then
      e.lease = lease
      put(id, e)
    end
    if data ~= '' then call('HSET', R, 'data', string.sub(data, 2)) end
    touched(e.owner)
    result = grant(id, e, ends)
  end
  wake(key)
  return result
end

for n = 0, #KEYS / 5 - 1 do
  R, H, Q, X, E = unpack(KEYS, n * 5 + 1, n * 5 + 5)
  local key, id, version, lease, anew, data = unpack(ARGV, 2 + n * 6, 7 + n * 6)
  now, lease = real, tonumber(lease)
  results[n + 1] = id ~= '' and anew == '' and quick(id, lease, data) or byTheBook(id, version, lease, anew, data, key)
end
return results
