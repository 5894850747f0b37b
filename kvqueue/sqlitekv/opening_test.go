package sqlitekv_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/sqlitekv"
)

func TestWhatCannotBeOpenedIsAnErrorThatSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole")
	s := openFile(t, whole)
	for i := range 300 {
		_, err := s.Commit(t.Context(), nil, []kvqueue.Write{{Key: fmt.Append(nil, i), Value: make([]byte, 1000)}})
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())
	require.NoError(t, s.Close(), "twice")
	text, err := os.ReadFile(whole)
	require.NoError(t, err)
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, b, 0o600))
		return path
	}
	change := func(name string, b []byte, statement string) string {
		path := filepath.Join(dir, name)
		if b != nil {
			write(name, b)
		}
		db, err := sql.Open("sqlite", path)
		require.NoError(t, err)
		_, err = db.Exec(statement)
		require.NoError(t, err)
		require.NoError(t, db.Close())
		return path
	}
	damaged := bytes.Clone(text)
	for at := 4096; at+8 < len(damaged); at += 4096 {
		copy(damaged[at:], "not pages")
	}
	for path, says := range map[string]string{
		"":                                "has no name",
		dir:                               "it is a folder",
		filepath.Join(dir, "no", "queue"): "make the folder " + filepath.Join(dir, "no") + " first",
		write("empty", nil):               "is empty: its content was lost",
		write("text", bytes.Repeat([]byte("hello\n"), 5000)): "is not a file of SQLite",
		write("damaged", damaged):                            "is damaged",
		change("other", nil, "CREATE TABLE theirs (a)"):      "a file of another program",
		change("newer", text, "PRAGMA user_version = 7"):     "has format 7, and this program knows formats up to 1: use a newer program",
		change("shorn", text, "DROP TABLE state"):            "no such table",
	} {
		_, err := sqlitekv.Open(path)
		require.Error(t, err, path)
		assert.Contains(t, err.Error(), says)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.new-*"))
	require.NoError(t, err)
	assert.Empty(t, names)
	results, _, err := openFile(t, whole).Read(t.Context(), kvqueue.Range{Begin: []byte("0"), End: []byte("a")})
	require.NoError(t, err)
	assert.Len(t, results[0].Pairs, 300)
}

// SQLite would write what is in the log of a file into a new one of its name, over what that has.
func TestALogWithoutItsFileIsRefused(t *testing.T) {
	path := newPath(t)
	s := openFile(t, path)
	_, err := s.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte("k")}})
	require.NoError(t, err)
	log, err := os.ReadFile(path + "-wal")
	require.NoError(t, err)
	require.NotEmpty(t, log)
	alone := newPath(t)
	require.NoError(t, os.WriteFile(alone+"-wal", log, 0o600))
	_, err = sqlitekv.Open(alone)
	assert.ErrorContains(t, err, "is missing, and "+alone+"-wal is there")
	assert.NoFileExists(t, alone)
	require.NoError(t, os.WriteFile(alone+"-wal", nil, 0o600)) // it has nothing
	require.NoError(t, openFile(t, alone).Close())

	empty := newPath(t)
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	_, err = sqlitekv.Open(empty)
	assert.ErrorContains(t, err, "remove it together with "+empty+"-wal and "+empty+"-shm")
}

func TestAFileThatMayNotBeWrittenIsAnErrorThatSaysSo(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("this user may do everything")
	}
	path := newPath(t)
	require.NoError(t, openFile(t, path).Close())
	require.NoError(t, os.Chmod(path, 0o400))
	_, err := sqlitekv.Open(path)
	require.Error(t, err)
	assert.Contains(t, err.Error(), "this user needs the right to write")
	require.NoError(t, os.Chmod(path, 0))
	_, err = sqlitekv.Open(path)
	require.Error(t, err)
	assert.Contains(t, err.Error(), "this user needs the right to write")
}

// Nobody sees a file that another makes before it has all of its tables.
func TestThoseThatBeginTogetherUseOneFile(t *testing.T) {
	for range 5 {
		path := newPath(t)
		stores := make([]*sqlitekv.Store, 8)
		var all sync.WaitGroup
		for i := range stores {
			all.Go(func() {
				var err error
				stores[i], err = sqlitekv.Open(path)
				if assert.NoError(t, err) {
					_, err = stores[i].Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte{byte(i)}}})
					assert.NoError(t, err)
				}
			})
		}
		all.Wait()
		results, _, err := stores[0].Read(t.Context(), kvqueue.Range{Begin: []byte{0}, End: []byte{99}})
		require.NoError(t, err)
		assert.Len(t, results[0].Pairs, len(stores))
		for _, s := range stores {
			require.NoError(t, s.Close())
		}
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
}

func TestACallOnAClosedFileIsErrClosed(t *testing.T) {
	s := openFile(t, newPath(t))
	watched := make(chan error, 1)
	_, rev, err := s.Read(t.Context(), kvqueue.Range{Begin: []byte("k")})
	require.NoError(t, err)
	began := make(chan struct{})
	go func() {
		for e, err := range s.Watch(t.Context(), rev, []byte("k")) {
			if err != nil {
				watched <- err
				return
			}
			if string(e.Key) == "k" {
				close(began)
			}
		}
		watched <- nil
	}()
	_, err = s.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte("k")}})
	require.NoError(t, err)
	<-began
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-watched, kvqueue.ErrClosed)
	_, _, err = s.Read(t.Context(), kvqueue.Range{Begin: []byte("k")})
	require.ErrorIs(t, err, kvqueue.ErrClosed)
	_, err = s.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte("k")}})
	require.ErrorIs(t, err, kvqueue.ErrClosed)
	_, err = s.Session(t.Context(), time.Second)
	require.ErrorIs(t, err, kvqueue.ErrClosed)
}
