-- ARGV: channels, key, id, version, and '' or '=' followed by data.
open()
if not r then return 0 end
-- A mutex that nobody waits for: nobody is to be told, and nothing else can have expired.
if r.kind == MUTEX and ARGV[3] ~= '' and not r.delete and alone() then
  local ends, e = call('ZSCORE', H, ARGV[3]), entry(ARGV[3])
  if ends and tonumber(ends) > now and not e.delete then
    call('ZREM', H, ARGV[3])
    call('HDEL', E, ARGV[3])
    call('HSET', R, 'busy', 0, 'updated_by', e.owner, 'updated_at', str(now))
    if ARGV[5] ~= '' then call('HSET', R, 'data', string.sub(ARGV[5], 2)) end
    return 1
  end
end
reap()
local id, e = find(ARGV[3], ARGV[4])
local found = 0
if e then
  found = 1
  local waited = withdraw(id)
  if not waited then
    release(id, e)
    touched(e.owner)
    if ARGV[5] ~= '' then call('HSET', R, 'data', string.sub(ARGV[5], 2)) end
  end
  -- who only waited deletes nothing that is to be kept
  local deletes = r.delete or e.delete and (not waited or call('HEXISTS', R, 'retention') == 1)
  if r.busy == 0 and call('ZCARD', Q) == 0 and now >= r.shut and deletes then forget() end
end
wake()
return found
