-- ARGV: channel, name, schedule, tick in µs, then a task as in enqueue. The first
-- definition of a name wins.
local known = call('HGET', T, ARGV[2])
if known then
  local v = cmsgpack.unpack(known)
  if v[1] ~= ARGV[3] or tonumber(ARGV[4]) <= v[2] then return done(0) end
end
call('HSET', T, ARGV[2], cmsgpack.pack({ARGV[3], tonumber(ARGV[4])}))
return done((add(ARGV[5], ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8]))))
