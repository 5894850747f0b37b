-- ARGV: channels, key, whether holders are wanted.
open()
if not r then return {} end
reap()
local fields = call('HMGET', R, 'lease', 'fair', 'delete', 'delay', 'version', 'created_by', 'created_at', 'updated_by', 'updated_at', 'data')
local holders = {}
if ARGV[3] == '1' or r.kind == MUTEX then
  for _, id in ipairs(call('ZRANGE', H, 0, -1)) do
    holders[#holders + 1] = grant('', entry(id), tonumber(call('ZSCORE', H, id)))
  end
end
wake()
return {str(r.kind), str(r.size), str(r.fence), str(r.busy), str(call('ZCARD', Q)), fields, holders}
