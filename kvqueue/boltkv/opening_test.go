package boltkv_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/boltkv"
)

// hold is a process that has the file until its stdin ends.
func hold(path string) error {
	s, err := boltkv.Open(path)
	if err != nil {
		return err
	}
	fmt.Println("has it")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	return s.Close()
}

// held starts hold, and waits until it has the file.
func held(t *testing.T, path string) (kill, end func()) {
	cmd := process(t, "hold", path)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "has it\n", line)
	kill = func() { require.NoError(t, cmd.Process.Kill()); _ = cmd.Wait() }
	end = func() { require.NoError(t, in.Close()); require.NoError(t, cmd.Wait()) }
	return kill, end
}

func TestAFileThatAnotherProcessHasIsAnErrorThatSaysWhatToDo(t *testing.T) {
	path := newPath(t)
	_, end := held(t, path)
	_, err := boltkv.Open(path)
	require.ErrorIs(t, err, boltkv.ErrTaken)
	assert.Contains(t, err.Error(), path)
	assert.Contains(t, err.Error(), "use Dial")
	end()
	openFile(t, path)
}

func TestWhatCannotBeOpenedIsAnErrorThatSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole")
	s := openFile(t, whole)
	q := openQueue(t, s)
	for i := range 300 {
		_, err := q.Enqueue(t.Context(), bytes.Repeat([]byte{byte(i)}, 1000))
		require.NoError(t, err)
	}
	require.NoError(t, q.Close(t.Context()))
	require.NoError(t, s.Close())
	text, err := os.ReadFile(whole)
	require.NoError(t, err)
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, b, 0o600))
		return path
	}
	other := filepath.Join(dir, "other")
	change(t, other, func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("theirs")); return err })
	newer := write("newer", text)
	change(t, newer, func(tx *bbolt.Tx) error { return tx.Bucket([]byte("about")).Put([]byte("format"), []byte("7")) })
	damaged := bytes.Clone(text)
	for at := 4 * os.Getpagesize(); at+8 < len(damaged); at += os.Getpagesize() {
		copy(damaged[at:], "not pages")
	}
	for path, says := range map[string]string{
		"":                                "has no name",
		dir:                               "it is a folder",
		filepath.Join(dir, "no", "queue"): "make the folder " + filepath.Join(dir, "no") + " first",
		write("text", bytes.Repeat([]byte("hello\n"), 5000)): "is damaged",
		write("short", text[:len(text)/2]):                   "is damaged",
		write("damaged", damaged):                            "is damaged",
		other:                                                "a file of another program",
		newer:                                                "format 7, and this program knows formats up to 1: use a newer program",
	} {
		_, err := boltkv.Open(path)
		require.Error(t, err, path)
		assert.Contains(t, err.Error(), says)
		_, err = os.Stat(path + ".sock")
		assert.Error(t, err, "no socket is left")
	}
	s = openFile(t, whole)
	n, err := openQueue(t, s).Len(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 300, n.Ready)
}

// change changes a file behind the back of the package.
func change(t *testing.T, path string, f func(tx *bbolt.Tx) error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second})
	require.NoError(t, err)
	require.NoError(t, db.Update(f))
	require.NoError(t, db.Close())
}

func TestAnEmptyFileIsBegun(t *testing.T) {
	path := newPath(t)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	openFile(t, path, boltkv.NoSync(), boltkv.NoSocket())
	_, err := os.Stat(path + ".sock")
	assert.Error(t, err, "NoSocket")
}

func TestACallOnAClosedFileIsErrClosed(t *testing.T) {
	s := openFile(t, newPath(t))
	require.NoError(t, s.Close())
	_, _, err := s.Read(t.Context(), kvqueue.Range{Begin: []byte("k")})
	require.ErrorIs(t, err, kvqueue.ErrClosed)
	_, err = s.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte("k")}})
	require.ErrorIs(t, err, kvqueue.ErrClosed)
	_, err = s.Session(t.Context(), time.Second)
	require.ErrorIs(t, err, kvqueue.ErrClosed)
}
