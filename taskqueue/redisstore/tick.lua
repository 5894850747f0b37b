-- ARGV: channel, name, schedule, tick in µs, then a task as in enqueue.
local known = call('HGET', T, ARGV[2])
local schedule = ARGV[3]
if known then
  local v = cmsgpack.unpack(known)
  if tonumber(ARGV[4]) <= v[2] then return done(0) end
  schedule = v[1] -- the first definition wins
end
call('HSET', T, ARGV[2], cmsgpack.pack({schedule, tonumber(ARGV[4])}))
return done(add(ARGV[5], ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8]))[1])
