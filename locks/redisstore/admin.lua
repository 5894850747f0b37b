-- ARGV: channels, key, act, and what it needs. The answer is a word and, for a conflict,
-- what there is.
local act = ARGV[3]
open()
if r then reap() end

if act == 'create' then
  local kind, size, lease, fair, delete, delay, version, by = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11]
  if r and r.kind ~= kind then return {'kind', str(r.kind)} end
  if r and kind ~= SEMAPHORE and r.busy > 0 then return {'held'} end
  if kind ~= SEMAPHORE then size = 1 end
  if not r then make(kind, size, 0, {'version', version, 'created_by', by}) end
  save('size', size)
  call('HSET', R, 'lease', lease, 'fair', fair, 'delete', delete, 'delay', delay)
  keep()
  if ARGV[12] ~= '' then call('HSET', R, 'data', string.sub(ARGV[12], 2)) end
  touched(by)
  wake()
  return {'ok', shown(true)}
elseif act == 'delete' then
  if not r then return {'none'} end
  if r.busy > 0 then return {'held'} end
  if call('ZCARD', Q) > 0 then return {'waited'} end
  if now < r.shut then return {'shut'} end
  if ARGV[4] ~= '' and ARGV[4] ~= call('HGET', R, 'version') then return {'version'} end
  forget()
elseif act == 'purge' then
  local last = tonumber(ARGV[5])
  if last == 0 then last = real end
  local looked, gone = tidy(tonumber(ARGV[4]), last)
  return {'ok', looked, gone, str(last)}
elseif act == 'revoke' then
  local n, all, force = 0, ARGV[4] == '' and ARGV[5] == '', ARGV[6] == '1'
  if r then
    if force and all then -- who waits may be dead as well, and who lives asks again
      save('shut', 0)
      for _, id in ipairs(call('ZRANGE', Q, 0, -1)) do withdraw(id) end
    end
    for _, id in ipairs(call('ZRANGE', H, 0, -1)) do
      local e = entry(id)
      if not (all or find(ARGV[4], ARGV[5]) == id) then
        -- it is another's
      elseif force then
        release(id, e)
        n = n + 1
      elseif not e.revoked then
        e.revoked = true
        put(id, e)
        n = n + 1
      end
    end
  end
  wake()
  return {'ok', n}
end
wake()
return {'ok'}
