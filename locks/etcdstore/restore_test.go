package etcdstore

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
)

// TestARestoreIsTold: the data of etcd are put back, as they were some grants before. Only where its
// revisions go on beyond those from before, as after --bump-revision, do the tokens.
func TestARestoreIsTold(t *testing.T) {
	s, server := start(t)
	var mu sync.Mutex
	var told []string
	s.warn = func(text string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, text)
	}
	token := func(id string) int64 {
		turn, err := s.Acquire(t.Context(), name, []locks.Request{request(id, time.Minute)})
		for errors.Is(err, locks.ErrUnavailable) { // the client has not noticed yet that etcd is there again
			turn, err = s.Acquire(t.Context(), name, []locks.Request{request(id, time.Minute)})
		}
		require.NoError(t, err)
		s.releases(t, id)
		return turn.Answers[0].Grant.Fence
	}
	backup := filepath.Join(t.TempDir(), "backup")
	restore := func() {
		server.Kill()
		require.NoError(t, os.RemoveAll(server.Dir))
		require.NoError(t, os.CopyFS(server.Dir, os.DirFS(backup)))
		server.Start()
	}
	first := token("a")
	server.Stop()
	require.NoError(t, os.CopyFS(backup, os.DirFS(server.Dir)))
	server.Start()
	last := first
	for _, id := range []string{"b", "c", "d"} {
		next := token(id)
		require.Greater(t, next, last)
		last = next
	}
	require.Empty(t, told, "a server that is started again is none that has gone back")

	restore()
	require.LessOrEqual(t, token("e"), last, "else this test shows nothing")
	require.Len(t, told, 1)
	require.Contains(t, told[0], "--bump-revision")
	token("f")
	require.Len(t, told, 1, "it is told once")

	restore()
	for header := int64(0); header <= last; { // as etcd is after a restore with a greater revision
		answer, err := s.client.Put(t.Context(), "else", "")
		require.NoError(t, err)
		header = answer.Header.Revision
	}
	require.Greater(t, token("g"), last)
	require.Len(t, told, 1)
}
