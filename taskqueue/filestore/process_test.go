//go:build unix

package filestore_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/filestore"
)

func opened(t *testing.T, path string) taskqueue.Store {
	t.Helper()
	s, err := filestore.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func added(t *testing.T, s taskqueue.Store, id string) {
	t.Helper()
	r, err := s.Enqueue(context.Background(), "q", []taskqueue.NewTask{{Task: taskqueue.Task{ID: id, Type: "t"}}})
	require.NoError(t, err)
	require.Equal(t, taskqueue.Added, r[0].Verdict)
}

func sound(t *testing.T, s taskqueue.Store) {
	t.Helper()
	faults, err := s.(taskqueue.Auditor).Audit(context.Background(), "q")
	require.NoError(t, err)
	assert.Empty(t, faults)
}

func TestWhatWasAcknowledgedIsThereAfterKill9(t *testing.T) {
	for range 3 {
		path := filepath.Join(t.TempDir(), "tasks")
		cmd, lines, _ := another(t, "enqueuer", path)
		var ids []string
		for len(ids) < 100 && lines.Scan() {
			ids = append(ids, lines.Text())
		}
		require.NoError(t, cmd.Process.Kill())
		for lines.Scan() { // what it has printed until then
			ids = append(ids, lines.Text())
		}
		_ = cmd.Wait()
		s := opened(t, path)
		for _, id := range ids {
			_, err := s.Get(context.Background(), "q", id)
			require.NoError(t, err, id)
		}
		sound(t, s)
	}
}

func TestAnotherTakesOverWhenTheOwnerIsKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks")
	cmd, lines, _ := another(t, "owner", path)
	require.True(t, lines.Scan())
	require.Equal(t, "open", lines.Text())
	s := opened(t, path)
	added(t, s, "a")
	got, err := s.Claim(context.Background(), taskqueue.ClaimRequest{Queue: "q", Worker: "w", Nonce: "1", Max: 1, Lease: time.Minute})
	require.NoError(t, err)
	require.Len(t, got.Tasks, 1)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	var first error
	require.Eventually(t, func() bool {
		_, err := s.Get(context.Background(), "q", "a")
		if first == nil {
			first = err
		}
		return err == nil
	}, 20*time.Second, 5*time.Millisecond)
	require.Error(t, first, "one call may be lost")
	run := got.Tasks[0]
	r, err := s.Settle(context.Background(), "q", []taskqueue.Outcome{{Ref: taskqueue.Ref{ID: "a", Token: run.Token}, Kind: taskqueue.Succeeded}})
	require.NoError(t, err)
	assert.Equal(t, []taskqueue.SettleResult{taskqueue.Settled}, r, "nobody else has begun it")
	_, err = os.Stat(path + ".sock")
	require.NoError(t, err)
	third := opened(t, path)
	i, err := third.Get(context.Background(), "q", "a")
	require.NoError(t, err)
	assert.Equal(t, taskqueue.StateDone, i.State)
	sound(t, third)
}

func TestCallsEndWithTheirContextWhileTheOwnerIsStopped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks")
	cmd, lines, _ := another(t, "owner", path)
	require.True(t, lines.Scan())
	s := opened(t, path)
	added(t, s, "a")
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	var status syscall.WaitStatus
	_, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
	require.NoError(t, err)
	require.True(t, status.Stopped())
	calls := map[string]func(ctx context.Context) error{
		"Get": func(ctx context.Context) error { _, err := s.Get(ctx, "q", "a"); return err },
		"Enqueue": func(ctx context.Context) error {
			_, err := s.Enqueue(ctx, "q", []taskqueue.NewTask{{Task: taskqueue.Task{ID: "b", Type: "t"}}})
			return err
		},
		"Wait": func(ctx context.Context) error { return s.Wait(ctx, "q", 0, time.Now().Add(time.Hour)) },
		"Configure": func(ctx context.Context) error {
			return s.Configure(ctx, "q", func(set *taskqueue.Settings) { set.Paused = true })
		},
	}
	for name, call := range calls {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		assert.ErrorIs(t, call(ctx), context.DeadlineExceeded, name)
		cancel()
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	r, err := s.Enqueue(context.Background(), "q", []taskqueue.NewTask{{Task: taskqueue.Task{ID: "b", Type: "t"}}})
	require.NoError(t, err)
	assert.Contains(t, []taskqueue.Verdict{taskqueue.Added, taskqueue.Exists}, r[0].Verdict, "what was sent before is carried out, too, and saying it again does no harm")
	st, err := s.Stats(context.Background(), "q")
	require.NoError(t, err)
	assert.EqualValues(t, 2, st.States[taskqueue.StateReady])
}

func TestManyOpenWhileTheOwnerComesAndGoes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks")
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			for j := range 3 {
				s, err := filestore.Open(path)
				if !assert.NoError(t, err) {
					return
				}
				id := fmt.Sprint(i, " ", j)
				for { // the process that has the file may end
					_, err = s.Enqueue(context.Background(), "q", []taskqueue.NewTask{{Task: taskqueue.Task{ID: id, Type: "t"}}})
					if err == nil {
						break
					}
				}
				assert.NoError(t, s.Close())
			}
		})
	}
	all.Wait()
	s := opened(t, path)
	st, err := s.Stats(context.Background(), "q")
	require.NoError(t, err)
	assert.EqualValues(t, 180, st.States[taskqueue.StateReady])
	sound(t, s)
}

func TestTheSocketIsForOneUserAndReplacesAStaleOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks")
	stale, err := net.Listen("unix", path+".sock")
	require.NoError(t, err)
	stale.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, stale.Close())
	require.NoError(t, os.Mkdir(path+".sock.new", 0o777)) // of a process that was killed at the wrong moment
	s := opened(t, path)
	info, err := os.Stat(path + ".sock")
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	info, err = os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	added(t, opened(t, path), "a")
	require.NoError(t, s.Close())
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, left, 1, "the file alone is left")

	require.NoError(t, os.WriteFile(path+".sock", []byte("somebody's"), 0o600))
	_, err = filestore.Open(path)
	require.Error(t, err)
	assert.Contains(t, err.Error(), "in the way")
	text, err := os.ReadFile(path + ".sock")
	require.NoError(t, err)
	assert.Equal(t, "somebody's", string(text))
}

// The path of a socket has a hundred bytes. Folders are deeper than that.
func TestADeepFolder(t *testing.T) {
	for name, dir := range map[string]string{"deep": strings.Repeat("/folder", 40), "long": "/" + strings.Repeat("x", 200)} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir() + dir
			require.NoError(t, os.MkdirAll(dir, 0o700))
			path := filepath.Join(dir, "tasks"+strings.Repeat("y", 100))
			owner, user := opened(t, path), opened(t, path)
			added(t, user, "a")
			_, err := owner.Get(context.Background(), "q", "a")
			require.NoError(t, err)
			require.NoError(t, owner.Close())
			require.Eventually(t, func() bool {
				_, err := user.Get(context.Background(), "q", "a")
				return err == nil
			}, 20*time.Second, time.Millisecond)
		})
	}
}

// The socket is beside the file, by whatever way a process has come to it.
func TestOneFileByManyPaths(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tasks")
	added(t, opened(t, path), "a")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "other"), 0o700))
	link := filepath.Join(dir, "other", "link")
	require.NoError(t, os.Symlink(path, link))
	t.Chdir(filepath.Join(dir, "other"))
	for _, way := range []string{link, "link", "../tasks", "../other/../tasks"} {
		_, err := opened(t, way).Get(context.Background(), "q", "a")
		require.NoError(t, err, way)
	}
}
