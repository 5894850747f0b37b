package mysqlstore

import "github.com/ambit-go/ambit/locks"

// A transaction at REPEATABLE READ, which is the default, reads what was there when it began,
// unless each SELECT locks what it reads.
const share = " LOCK IN SHARE MODE"

var fenceText = dialect.FenceText("SELECT count(*) FROM lk_resource WHERE %s"+share, share)

// FenceQueries is for fence.Same. The row of the lock is locked until the end of the user's
// transaction.
func (s *Store) FenceQueries(name locks.Name, id string) (lock, left locks.Query) {
	return fenceText.Queries(name, id)
}
