-- ARGV: channel, then for each outcome: id, token, kind, after in µs, error, result.
local SUCCEEDED, FAILED, BURIED, RELEASED, SNOOZED, UNHANDLED = 1, 2, 3, 4, 5, 7
step()

local function finish(t, kind, after, error, result)
  if error ~= '' then t.error = error end
  if has(t, CANCEL) and kind ~= SUCCEEDED then cancelled(t)
  elseif kind == SUCCEEDED then
    t.result = result
    over(t, ENDED_DONE)
    count('done', 1)
  elseif kind == BURIED then
    t.failures = t.failures + 1
    count('failed', 1)
    bury(t)
  elseif kind == FAILED then
    t.failures = t.failures + 1
    count('failed', 1)
    t.releases = 0
    if t.failures >= t.maxFailures then bury(t) else wait(t, RETRYING, after) end
  else -- given back
    t.attempt = t.attempt - 1
    t.releases = kind == SNOOZED and 0 or t.releases + 1
    count('released', 1)
    if kind == UNHANDLED then count('unhandled', 1) else set(t, LASTS, true) end
    wait(t, t.failures > 0 and RETRYING or SCHEDULED, after)
  end
end

-- uncrash takes back what a lease that has run out has made of t.
local function uncrash(t)
  set(t, REAPED, false)
  t.crashes = t.crashes - 1
  count('crashed', -1)
  if t.state == ENDED_DEAD then count('dead', -1)
  elseif t.state == ENDED_CANCELLED then count('cancelled', -1) end
  t.ended = 0
end

-- settled is the answer about a run that is settled.
local function settled(t) return t.state == ENDED_CANCELLED and has(t, CANCEL) and 4 or 1 end

local results = {}
each(ARGV, 2, 6, function(i)
  local t, token = load(ARGV[i], one), tonumber(ARGV[i + 1])
  local answer
  if not t then answer = 3
  elseif t.token ~= token then answer = 2
  elseif t.settled == token then answer = settled(t)
  elseif t.state ~= RUNNING and not has(t, REAPED) then answer = 2 -- Retry or Cancel has decided meanwhile
  else
    unindex(t)
    local revived = indexes[t.state] ~= nil
    if has(t, REAPED) then uncrash(t) end
    t.settled = token
    finish(t, tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]), ARGV[i + 4], ARGV[i + 5])
    if revived and waits(t) and t.key ~= '' and t.until_ == 0 then
      -- Its end had freed its key. It waits again only if it has that again.
      if holder(t.key) then bury(t) else set(t, HOLDS, true) end
    end
    index(t)
    save(t)
    answer = settled(t)
  end
  results[#results + 1] = answer
end)
if meta.full then -- a claim got less than it wanted because of the limit
  call('HDEL', C, 'full')
  ready = ready + #results
end
return done(results)
