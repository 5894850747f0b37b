package pgstore

import "github.com/ambit-go/ambit/locks"

var fenceText = dialect.FenceText("SELECT count(*) FROM (SELECT fence FROM lk_resource WHERE %s FOR SHARE) AS locked", "")

// FenceQueries is for fence.Same. The row of the lock is locked until the end of the user's
// transaction. At an isolation above READ COMMITTED a lease that was renewed since the
// transaction began is an error of serialization, as any row is.
func (s *Store) FenceQueries(name locks.Name, id string) (lock, left locks.Query) {
	return fenceText.Queries(name, id)
}
