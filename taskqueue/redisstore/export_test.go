package redisstore

// Waiting is how many calls of Enqueue on a queue wait to be sent.
func Waiting(s *Store, queue string) int { return s.batches.of(queue).Waiting() }
