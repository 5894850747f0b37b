-- ARGV: channel, the settings as they were read, and what they are to be. It says 0 if
-- they have changed since.
if (call('HGET', C, 'settings') or '') ~= ARGV[2] then return 0 end
call('HSET', C, 'settings', ARGV[3])
wake = true
return done(1)
