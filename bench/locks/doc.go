// Package locks measures the budgets L1 to L8 of package locks of this project, beside
// bsm/redislock, redsync, rueidislock, a table by hand and the mutex of etcd, on servers that it
// starts and stops itself. make lockbudgets prints the tables. They fail for nothing:
// machines differ, and most of them are busy.
package locks
