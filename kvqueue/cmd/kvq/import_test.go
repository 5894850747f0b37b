package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// testdata/bolt.db was made by the last version that kept queues in such files: the queue orders
// has a dead letter, items that are ready, one of them after two failures, and a claimed one; a
// queue with another prefix has two items, and there is a key of a user.
func TestAFileOfAnEarlierVersionIsImported(t *testing.T) {
	s := newSession(t)
	before, err := os.ReadFile("testdata/bolt.db")
	require.NoError(t, err)
	assert.Contains(t, s.ok("", "import", "testdata/bolt.db"), "keys of testdata/bolt.db are in")
	after, err := os.ReadFile("testdata/bolt.db")
	require.NoError(t, err)
	assert.Equal(t, before, after)

	orders := []string{"-queue", "orders"}
	with := func(args ...string) string { t.Helper(); return s.ok("", append(args, orders...)...) }
	assert.Contains(t, with("dead"), `"dead" failures=3 crashes=0 why="boom"`)
	assert.Contains(t, with("peek"), `"tried" (2 tries)`)
	s.ok("", append([]string{"put", "-quiet", "new"}, orders...)...)
	assert.Equal(t, "tried\nclaimed\nready 1\n"+string(make([]byte, 3000))+"\n\nnew\n", with("take", "-until-empty"))
	other := []string{"-queue", "a/b \xff", "-prefix", "mine"}
	assert.Equal(t, "other 1\nother 2\n", s.ok("", append([]string{"take", "-until-empty"}, other...)...))
	with("requeue", "-all")
	assert.Equal(t, "dead\n", with("take", "-until-empty"))
	assert.Contains(t, with("doctor"), "0 faults")

	status, _, errs := s.kvq("", "import", "testdata/bolt.db")
	assert.Equal(t, 1, status)
	assert.Contains(t, errs, "nothing was copied")
	for _, path := range []string{"no such file", "import.go", filepath.Dir(s.store)} {
		status, _, errs = s.kvq("", "import", path)
		assert.Equal(t, 1, status, errs)
	}
	status, _, errs = s.kvq("", "len", "-store", "sqlite:testdata/bolt.db")
	assert.Equal(t, 1, status)
	assert.Contains(t, errs, "kvq import reads")
}
