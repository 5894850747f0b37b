-- ARGV: channel, then for each task: id, envelope, delay in µs, when in µs or 0.
local results = {}
each(ARGV, 2, 4, function(i)
  local verdict, holder = add(ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]))
  results[#results + 1] = holder and {verdict, holder} or verdict
end)
return done(results)
