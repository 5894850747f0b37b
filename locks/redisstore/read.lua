-- ARGV: channels, key, whether holders are wanted.
open()
if not r then return {} end
reap()
wake()
return shown(ARGV[3] == '1')
