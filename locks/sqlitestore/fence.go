package sqlitestore

import "github.com/ambit-go/ambit/locks"

// A transaction that began as a writer keeps all others from writing.
var fenceText = dialect.FenceText("SELECT count(*) FROM lk_resource WHERE %s", "")

// FenceQueries is for fence.Same, in a short transaction that began as a writer, with BEGIN
// IMMEDIATE: until it ends nobody else writes anything to the file.
func (s *Store) FenceQueries(name locks.Name, id string) (lock, left locks.Query) {
	return fenceText.Queries(name, id, s.file.now())
}
