-- ARGV: channel, then for each task: id, envelope, delay in µs, when in µs or 0.
local results = {}
for i = 2, #ARGV, 4 do
  results[#results + 1] = add(ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]))
end
return done(results)
