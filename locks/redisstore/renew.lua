-- KEYS: seven for each lease. ARGV: channels, then 6 for each: key, id, version, lease,
-- new version, and '' or '=' followed by data.
-- One step renews many leases, each of a lock of its own.
local results = {}
local real = now
for n = 0, #KEYS / 7 - 1 do
  R, H, Q, X, E, I, F = unpack(KEYS, n * 7 + 1, n * 7 + 7)
  local at = 2 + n * 6
  now, r = real, nil
  open()
  local result = {'gone'}
  if r then
    reap()
    local id, e = find(ARGV[at + 1], ARGV[at + 2])
    local ends = e and tonumber(call('ZSCORE', H, id) or '0') or 0
    if ends > 0 and e.revoked then
      result = {'revoked'}
    elseif ends > 0 then
      local lease, version, data = tonumber(ARGV[at + 3]), ARGV[at + 4], ARGV[at + 5]
      ends = math.max(ends, now + lease)
      call('ZADD', H, str(ends), id)
      local changes = version ~= '' and version ~= e.version
      if changes then e.prev, e.version = e.version, version end
      if changes or e.lease ~= lease then
        e.lease = lease
        put(id, e)
      end
      if data ~= '' then call('HSET', R, 'data', string.sub(data, 2)) end
      touched(e.owner)
      result = {'extended', grant(id, e, ends)}
    end
    wake(ARGV[at])
  end
  results[n + 1] = result
end
return results
