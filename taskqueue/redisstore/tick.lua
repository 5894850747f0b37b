-- ARGV: channel, name, schedule, its time, tick in µs, then a task as in enqueue. The newest
-- schedule of a name wins, of those that are as new the first. A tick of 0 has no task: it only
-- notes the schedule. One that is far ahead is refused: none would be taken until then.
local at, defined, last = tonumber(ARGV[5]), tonumber(ARGV[4]), 0
if at > now + 15 * MINUTE then return done(-1) end
local known = call('HGET', T, ARGV[2])
if known then
  local v = cmsgpack.unpack(known)
  local since = v[3] or 0
  if v[1] ~= ARGV[3] and defined <= since then return done(0) end
  if at > 0 and at <= v[2] then return done(0) end
  last, defined = v[2], math.max(defined, since)
end
call('HSET', T, ARGV[2], cmsgpack.pack({ARGV[3], math.max(at, last), defined}))
if at == 0 then return done(1) end
return done((add(ARGV[6], ARGV[7], tonumber(ARGV[8]), tonumber(ARGV[9]))))
