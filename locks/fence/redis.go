package fence

import "strconv"

// Redis is a script for Redis (EVAL) that writes a value if the token is good. It needs no
// client of this module: give the text and what [RedisArgs] returns to yours. It returns 1,
// or 0 if the token is stale.
//
//	ok, err := rdb.Eval(ctx, fence.Redis, []string{"report", "report:fence"}, fence.RedisArgs(token, value)...).Bool()
//
// KEYS[1] is what is written to, with SET; KEYS[2] keeps the greatest token. For a semaphore
// it has the slot in its name. In a cluster both have the same hash tag. Tokens are compared as
// numbers: they are exact in the doubles of Lua.
const Redis = `local seen = tonumber(redis.call('GET', KEYS[2]) or '0')
if tonumber(ARGV[1]) < seen then return 0 end
redis.call('SET', KEYS[2], ARGV[1])
redis.call('SET', KEYS[1], ARGV[2])
return 1`

// RedisCheck is the part of [Redis] that checks and notes the token, for scripts of one's
// own to begin with. It expects what keeps the greatest token in KEYS[1] and the token in
// ARGV[1], and returns 0 if it is stale.
const RedisCheck = `if tonumber(ARGV[1]) < tonumber(redis.call('GET', KEYS[1]) or '0') then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
`

// RedisArgs are the arguments of [Redis].
func RedisArgs(t Token, value any) []any {
	return []any{strconv.FormatInt(t.Value, 10), value}
}
