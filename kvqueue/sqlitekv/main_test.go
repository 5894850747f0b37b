package sqlitekv_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/clitest"
	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/internal/proof"
	"github.com/ambit-go/ambit/kvqueue/sqlitekv"
)

// asProcess has the test program be one of the processes of a test: its value says which.
const asProcess = "SQLITEKV_TEST_PROCESS"

var processes = map[string]func(path string) error{"enqueue": enqueueForEver}

func TestMain(m *testing.M) {
	proof.Main(opener)
	if f := processes[os.Getenv(asProcess)]; f != nil {
		if err := f(os.Args[1]); err != nil {
			println(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(clitest.LeakChecked(m).Run())
}

// process makes a command that is this program as a process of a test.
func process(t *testing.T, name, path string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], path)
	cmd.Env = append(os.Environ(), asProcess+"="+name, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	t.Cleanup(func() {
		if cmd.Process != nil && cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return cmd
}

// opener opens a file.
func opener(path string) proof.Opener {
	return func(context.Context) (kvqueue.KV, func(), error) {
		s, err := sqlitekv.Open(path)
		if err != nil {
			return nil, nil, err
		}
		return s, func() { _ = s.Close() }, nil
	}
}

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "queue.db") }

// One process opens the file while another closes it, as the last that has it open.
func TestAFileIsOpenedWhileOthersCloseIt(t *testing.T) {
	path := newPath(t)
	var g sync.WaitGroup
	for range 2 {
		g.Go(func() {
			for range 20 {
				s, err := sqlitekv.Open(path)
				if !assert.NoError(t, err) {
					return
				}
				_, err = s.Commit(context.Background(), nil, []kvqueue.Write{{Key: []byte("k")}})
				assert.NoError(t, err)
				assert.NoError(t, s.Close())
			}
		})
	}
	g.Wait()
}

// openFile opens a file that is closed at the end of the test.
func openFile(t testing.TB, path string, options ...sqlitekv.Option) *sqlitekv.Store {
	t.Helper()
	s, err := sqlitekv.Open(path, options...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// openQueue opens a handle that is closed at the end of the test.
func openQueue(t *testing.T, kv kvqueue.KV, options ...kvqueue.Option) *kvqueue.Queue {
	t.Helper()
	q, err := kvqueue.Open(t.Context(), kv, "q", append([]kvqueue.Option{kvqueue.RetryDelay(0, 0)}, options...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close(context.Background())) })
	return q
}

// drain takes what is ready, in order.
func drain(t *testing.T, q *kvqueue.Queue) (values []string) {
	t.Helper()
	for {
		n, err := q.Len(t.Context())
		require.NoError(t, err)
		if n.Ready == 0 {
			return values
		}
		require.NoError(t, q.Do(t.Context(), 50, func(_ context.Context, items []kvqueue.Item) error {
			for _, i := range items {
				values = append(values, string(i.Value))
			}
			return nil
		}))
	}
}
