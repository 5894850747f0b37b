-- ARGV: channel, the settings as they were read, and what they are to be, and whether they are
-- the settings or the limits. It says 0 if they have changed since.
if (call('HGET', C, ARGV[4]) or '') ~= ARGV[2] then return 0 end
call('HSET', C, ARGV[4], ARGV[3])
wake = true
return done(1)
