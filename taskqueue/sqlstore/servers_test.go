//go:build unix

package sqlstore

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/taskqueuetest"
)

// A cluster is a server of PostgreSQL that this test binary has started. It listens on a socket in its folder: a port
// that is free now may be taken when the server begins to listen, and for a minute after that.
type cluster struct {
	dir     string
	as      *syscall.SysProcAttr
	process *os.Process   // of the server
	ended   chan struct{} // closed when it has
}

// patience bounds waits for what comes for certain, however slow the machine is.
const patience = 5 * time.Minute

var shared struct {
	sync.Once
	*cluster
	databases atomic.Int64
}

func TestMain(m *testing.M) {
	code := 0
	if crowdRole() {
		crowdProcess()
	} else {
		code = m.Run()
		if shared.cluster != nil {
			shared.stop()
			_ = os.RemoveAll(shared.dir)
		}
	}
	os.Exit(code)
}

func programOf(t testing.TB, name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	require.NotEmpty(t, found, "install it: apt-get install postgresql")
	return found[len(found)-1]
}

// startCluster starts a server with settings of its own. It refuses to run as root, so it
// runs as the user that its package has made.
func startCluster(t testing.TB, settings ...string) *cluster {
	dir, err := os.MkdirTemp("", "taskqueue-postgres-")
	require.NoError(t, err)
	c := &cluster{dir: dir}
	if os.Geteuid() == 0 {
		u, err := user.Lookup("postgres")
		require.NoError(t, err)
		uid, err := strconv.Atoi(u.Uid)
		require.NoError(t, err)
		gid, err := strconv.Atoi(u.Gid)
		require.NoError(t, err)
		require.NoError(t, os.Chown(dir, uid, gid))
		c.as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	initdb := exec.Command(programOf(t, "initdb"), "-D", filepath.Join(dir, "data"), "-U", "postgres", "-E", "UTF8", "--locale=C", "-A", "trust", "--no-sync")
	initdb.SysProcAttr, initdb.Dir = c.as, os.TempDir()
	out, err := initdb.CombinedOutput()
	require.NoError(t, err, string(out))
	c.start(t, settings...)
	return c
}

func (c *cluster) start(t testing.TB, settings ...string) {
	args := append([]string{"-D", filepath.Join(c.dir, "data"), "-h", "", "-k", c.dir, "-c", "fsync=off", "-c", "max_connections=200"}, settings...)
	c.run(t, args)
	require.Eventually(t, func() bool {
		conn, err := pgx.Connect(context.Background(), c.url("postgres"))
		if err == nil {
			_ = conn.Close(context.Background())
			return true
		}
		select {
		case <-c.ended: // it does not start while the children of one that was killed have its shared memory
			c.run(t, args)
		default:
		}
		return false
	}, patience, 20*time.Millisecond)
}

// run starts the process. It may end by itself.
func (c *cluster) run(t testing.TB, args []string) {
	cmd, ended := exec.Command(programOf(t, "postgres"), args...), make(chan struct{})
	cmd.SysProcAttr, cmd.Dir = c.as, os.TempDir()
	require.NoError(t, cmd.Start())
	c.process, c.ended = cmd.Process, ended
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
}

// end sends a signal and waits until the server has ended.
func (c *cluster) end(by os.Signal) {
	_ = c.process.Signal(by)
	<-c.ended
}

func (c *cluster) stop() { c.end(os.Interrupt) }

func (c *cluster) url(database string) string {
	return fmt.Sprintf("postgres://postgres@/%s?host=%s", database, url.QueryEscape(c.dir))
}

// emptyDatabase makes an empty database on the server that all tests share.
func emptyDatabase(t testing.TB) string {
	shared.Do(func() { shared.cluster = startCluster(t) })
	name := fmt.Sprint("test", shared.databases.Add(1))
	conn, err := pgx.Connect(context.Background(), shared.url("postgres"))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	_, err = conn.Exec(context.Background(), "CREATE DATABASE "+name)
	require.NoError(t, err)
	return shared.url(name)
}

func poolOf(t testing.TB, url string) *pgxpool.Pool {
	pool, err := pgxpool.New(context.Background(), url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// openServers returns what opens an empty store for each test, in one database: each has
// another prefix.
func openServers(t testing.TB) func(t *testing.T) taskqueue.Store {
	pool := poolOf(t, emptyDatabase(t))
	var n atomic.Int64 // tests may be parallel
	return func(t *testing.T) taskqueue.Store {
		s, err := New(context.Background(), pool, Prefix(fmt.Sprintf("t%d_", n.Add(1))))
		require.NoError(t, err)
		return s
	}
}

func TestPostgres(t *testing.T) { taskqueuetest.Run(t, openServers(t)) }

func TestPostgresWorkers(t *testing.T) { taskqueuetest.RunWorkers(t, openServers(t)) }
