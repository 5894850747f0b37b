-- ARGV: channels, key, id, version, and '' or '=' followed by data.
open()
if not r then return 0 end
reap()
local id, e = find(ARGV[3], ARGV[4])
local found = 0
if e then
  found = 1
  if not withdraw(id) then
    release(id, e)
    touched(e.owner)
    if ARGV[5] ~= '' then call('HSET', R, 'data', string.sub(ARGV[5], 2)) end
    if r.busy == 0 and call('ZCARD', Q) == 0 and now >= r.shut and (e.delete or call('HGET', R, 'delete') == '1') then forget() end
  end
end
wake()
return found
