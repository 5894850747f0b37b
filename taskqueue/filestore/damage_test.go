package filestore_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/filestore"
)

// whole returns a file with some tasks, how much of it is in use, and the size of a page.
func whole(t *testing.T, tasks int) (b []byte, used, page int64) {
	path := filepath.Join(t.TempDir(), "tasks")
	s, err := filestore.Open(path)
	require.NoError(t, err)
	for i := range tasks {
		task := taskqueue.Task{ID: fmt.Sprintf("%04d", i), Type: "t", Payload: make([]byte, 1+i%20*300), UniqueKey: fmt.Sprint(i), MaxFailures: 1, MaxCrashes: 1}
		_, err := s.Enqueue(t.Context(), "q", []taskqueue.NewTask{{Task: task}})
		require.NoError(t, err)
		if i%2 == 0 {
			got, err := s.Claim(t.Context(), taskqueue.ClaimRequest{Queue: "q", Worker: "w", Nonce: fmt.Sprint(i), Max: 1, Lease: time.Hour})
			require.NoError(t, err)
			require.Len(t, got.Tasks, 1)
		}
	}
	require.NoError(t, s.Close())
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	require.NoError(t, err)
	require.NoError(t, db.View(func(tx *bbolt.Tx) error { used, page = tx.Size(), int64(db.Info().PageSize); return nil }))
	require.NoError(t, db.Close())
	b, err = os.ReadFile(path)
	require.NoError(t, err)
	return b, used, page
}

// opens opens a file of these bytes, and returns how many tasks are in it.
func opens(t *testing.T, b []byte) (int, error) {
	path := filepath.Join(t.TempDir(), "tasks")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	s, err := filestore.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { require.NoError(t, s.Close()) }()
	n := 0
	for _, state := range []taskqueue.State{taskqueue.StateReady, taskqueue.StateRunning} {
		for r := (taskqueue.ListRequest{State: state}); ; {
			page, err := s.List(t.Context(), "q", r)
			if err != nil {
				return n, err
			}
			n += len(page.Tasks)
			if r.Cursor = page.Cursor; r.Cursor == "" {
				break
			}
		}
	}
	return n, nil
}

func TestATruncatedFileIsToldAndDoesNotEndTheProcess(t *testing.T) {
	b, used, _ := whole(t, 120)
	n, err := opens(t, b[:used])
	require.NoError(t, err)
	assert.Equal(t, 120, n, "what is behind the last page in use is of no account")
	for range 40 {
		at := 1 + rand.Int64N(used-1)
		_, err := opens(t, b[:at])
		require.Error(t, err, "cut at %d of %d", at, used)
		assert.Contains(t, err.Error(), "is damaged")
		assert.Contains(t, err.Error(), "surgery", "what to do")
	}
}

func TestAFileWithPagesOverwrittenIsToldAndDoesNotEndTheProcess(t *testing.T) {
	b, used, page := whole(t, 50)
	told := 0
	for at := 2 * page; at < used; at += page {
		c := append([]byte(nil), b...)
		for i := range page {
			c[at+i] = byte(rand.Uint32())
		}
		n, err := opens(t, c)
		if err != nil {
			told++
		} else {
			assert.GreaterOrEqual(t, n, 49, "it was not in use, or a part of one payload")
		}
	}
	assert.Positive(t, told)
	// A few bytes within a page may be a part of a payload, which nothing checks.
	for range 40 {
		c := append([]byte(nil), b...)
		at := 2*page + rand.Int64N(used-2*page-8)
		binary.NativeEndian.PutUint64(c[at:], rand.Uint64())
		_, _ = opens(t, c)
	}
}

// The end of power in the middle of a commit: the pages that it has written are not
// referred to, and the meta page that it was to write is no longer one.
func TestATornCommitLosesNothing(t *testing.T) {
	b, used, page := whole(t, 120)
	const txid = 64
	older := int64(0)
	if binary.NativeEndian.Uint64(b[txid:]) > binary.NativeEndian.Uint64(b[page+txid:]) {
		older = page
	}
	for i := range page / 2 {
		b[older+i] = byte(rand.Uint32())
	}
	for i := used; i < int64(len(b)); i++ {
		b[i] = byte(rand.Uint32())
	}
	n, err := opens(t, b)
	require.NoError(t, err)
	assert.Equal(t, 120, n)
}

func TestWhatIsNoStoreIsTold(t *testing.T) {
	_, err := opens(t, []byte("Dear diary, today it rained. "))
	require.Error(t, err)
	assert.Contains(t, err.Error(), "is damaged")
	n, err := opens(t, nil)
	require.NoError(t, err, "an empty file is a new one")
	assert.Zero(t, n)
}
