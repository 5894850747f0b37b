-- ARGV: channel, worker, lease in µs, then for each run: id, token, whether there is
-- progress, progress.
local lease = tonumber(ARGV[3])
step()
local results = {}
each(ARGV, 4, 4, function(i)
  local t = load(ARGV[i], one)
  if not t or t.state ~= RUNNING or t.token ~= tonumber(ARGV[i + 1]) then
    results[#results + 1] = 3
  else
    local changed = lend(t, lease)
    if ARGV[i + 2] == '1' then t.progress = ARGV[i + 3]; changed = true end
    if changed then save(t) end
    results[#results + 1] = has(t, CANCEL) and 2 or 1
  end
end)
return done(results)
