-- ARGV: channel, id, act.
local t, act = load(ARGV[2]), tonumber(ARGV[3])
local CANCEL_IT, PROMOTE, RETRY_IT, DELETE = 1, 2, 3, 4
if not t then return -1 end
if act == CANCEL_IT and waits(t) then
  change(t, function() set(t, REAPED, false); cancelled(t) end)
elseif act == CANCEL_IT and t.state == WAITING then
  unlink(t)
  change(t, function() cancelled(t) end)
elseif act == PROMOTE and t.state == WAITING then
  unlink(t)
  change(t, function() wait(t, SCHEDULED, 0) end)
elseif act == CANCEL_IT and t.state == RUNNING then
  set(t, CANCEL, true)
  save(t)
elseif act == PROMOTE and waits(t) and t.due > now then
  change(t, function() t.due = now end)
elseif act == RETRY_IT and (t.state == ENDED_DEAD or t.state == ENDED_CANCELLED) then
  local other = t.key ~= '' and holder(t.key)
  if other then return {t.key, other} end
  change(t, function()
    t.failures, t.crashes, t.releases, t.flags, t.ended = 0, 0, 0, LASTS + bit.band(t.flags, PARENT), 0
    set(t, HOLDS, t.key ~= '')
    wait(t, SCHEDULED, 0)
  end)
elseif act == DELETE and t.state ~= RUNNING then
  forget(t)
else
  return done(0)
end
return done(1)
