//go:build linux

package etcdtest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/ambit-go/ambit/clitest"
)

// A Cluster is the members of one cluster. The test that has started it ends it.
type Cluster struct {
	Members []*Member
}

// A Member is one process.
type Member struct {
	Name     string
	Endpoint string // of clients: host and port
	dir      string
	settings settings
	process  *exec.Cmd // nil: it does not run
	input    io.Closer // its end is that of the process
	output   io.Reader
	report   strings.Builder
}

// An Option changes how members are started.
type Option func(*settings)

// Quota is how many bytes the file of a member may have before the cluster takes no more.
func Quota(bytes int64) Option { return func(s *settings) { s.Quota = bytes } }

// Sync has members wait for their disks, as etcd does by itself: for measurements. Without it
// they do not, which the end of a process cannot tell.
func Sync() Option { return func(s *settings) { s.Sync = true } }

// TLS has members speak TLS with their clients, by certificates that they have made themselves. See
// [Member.Certificate].
func TLS() Option { return func(s *settings) { s.TLS = true } }

// startTries is how many times a cluster is started, and a member: another process may take a port
// that was just free.
const startTries = 3

// Start starts a cluster, and returns when all members are ready. It ends with tb.
func Start(tb testing.TB, members int, options ...Option) *Cluster {
	tb.Helper()
	var last error
	for range startTries {
		c := newCluster(tb, members, options)
		tb.Cleanup(c.end)
		if last = c.start(); last == nil {
			return c
		}
		c.end()
	}
	tb.Fatalf("etcdtest: no cluster: %v", last)
	return nil
}

func newCluster(tb testing.TB, members int, options []Option) *Cluster {
	c, list := &Cluster{}, []string{}
	for i := range members {
		client, peer := "127.0.0.1:"+clitest.FreePort(tb), "127.0.0.1:"+clitest.FreePort(tb)
		s := settings{
			Name:   fmt.Sprintf("m%d", i),
			Dir:    tb.TempDir(),
			Client: "http://" + client,
			Peer:   "http://" + peer,
		}
		for _, o := range options {
			o(&s)
		}
		if s.TLS {
			s.Client = "https://" + client
		}
		list = append(list, s.Name+"="+s.Peer)
		c.Members = append(c.Members, &Member{Name: s.Name, Endpoint: client, dir: s.Dir, settings: s})
	}
	for _, m := range c.Members {
		m.settings.Cluster = strings.Join(list, ",")
	}
	return c
}

// start starts all members, and waits until they are ready: none is before most run. So if one
// ends, all do.
func (c *Cluster) start() error {
	for _, m := range c.Members {
		if err := m.launch(); err != nil {
			return err
		}
	}
	results := make(chan error)
	var processes []*os.Process
	for _, m := range c.Members {
		processes = append(processes, m.process.Process)
		go func() { results <- m.await() }()
	}
	var first error
	for range c.Members {
		if err := <-results; err != nil && first == nil {
			first = err
			for _, p := range processes {
				_ = p.Kill()
			}
		}
	}
	return first
}

// Restart kills all members that run, and starts all.
func (c *Cluster) Restart(tb testing.TB) {
	tb.Helper()
	var last error
	for range startTries {
		c.end()
		if last = c.start(); last == nil {
			return
		}
	}
	tb.Fatal(last)
}

func (c *Cluster) end() {
	for _, m := range c.Members {
		m.Kill()
	}
}

// Endpoints are those of all members.
func (c *Cluster) Endpoints() (all []string) {
	for _, m := range c.Members {
		all = append(all, m.Endpoint)
	}
	return all
}

// Certificate returns the file of the certificate of a member that speaks TLS.
func (m *Member) Certificate() string {
	return filepath.Join(m.dir, "data", "fixtures", "client", "cert.pem")
}

// Client returns a client of all members. It is closed at the end of tb.
func (c *Cluster) Client(tb testing.TB) *clientv3.Client {
	tb.Helper()
	client, err := NewClient(c.Endpoints())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// NewClient returns a client that finds members again soon after they have come back.
func NewClient(endpoints []string) (*clientv3.Client, error) {
	retry := backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: time.Second}
	return clientv3.New(clientv3.Config{
		Endpoints:            endpoints,
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		Logger:               zap.NewNop(),
		DialOptions:          []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{Backoff: retry, MinConnectTimeout: time.Second})},
	})
}

// Leader returns the member that leads. It waits until there is one, and all that answer
// agree.
func (c *Cluster) Leader(tb testing.TB) *Member {
	tb.Helper()
	client := c.Client(tb)
	for {
		for _, m := range c.Members {
			if m.process == nil {
				continue
			}
			ctx, cancel := context.WithTimeout(tb.Context(), time.Second)
			s, err := client.Status(ctx, m.Endpoint)
			cancel()
			if err == nil && s.Leader != 0 && s.Leader == s.Header.MemberId {
				return m
			}
			if tb.Context().Err() != nil {
				tb.Fatal("etcdtest: no leader")
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Start starts a member that does not run, with the files that it has, and waits until it
// is ready.
func (m *Member) Start() (err error) {
	for range startTries {
		if err = m.launch(); err != nil {
			return err
		}
		if err = m.await(); err == nil || !strings.Contains(err.Error(), "address already in use") {
			return err
		}
		time.Sleep(time.Second)
	}
	return err
}

func (m *Member) launch() error {
	text, err := json.Marshal(m.settings)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	p := exec.Command(program)
	p.Env = append(os.Environ(), memberEnv+"="+string(text))
	m.report.Reset()
	p.Stderr = &m.report
	if m.input, err = p.StdinPipe(); err != nil {
		return err
	}
	if m.output, err = p.StdoutPipe(); err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return err
	}
	m.process = p
	return nil
}

// await waits until a member that was launched is ready, or has ended, or for longer than a busy
// machine takes. One that is not ready is killed.
func (m *Member) await() error {
	process := m.process.Process
	late := time.AfterFunc(2*time.Minute, func() { _ = process.Kill() })
	defer late.Stop()
	if line, _ := bufio.NewReader(m.output).ReadString('\n'); line == "ready\n" {
		return nil
	}
	m.Kill()
	log, _ := os.ReadFile(filepath.Join(m.dir, "etcd.log"))
	return fmt.Errorf("%s is not ready: %s%s", m.Name, m.report.String(), log[max(0, len(log)-500):])
}

// Kill ends a member as kill -9 does, and waits for its end. One that was stopped ends, too.
func (m *Member) Kill() {
	if m.process == nil {
		return
	}
	_ = m.process.Process.Kill()
	_ = m.process.Wait()
	m.process = nil
}

// Stop has a member stand still until [Member.Continue].
func (m *Member) Stop() error { return m.process.Process.Signal(syscall.SIGSTOP) }

// Continue has a member that was stopped go on.
func (m *Member) Continue() error { return m.process.Process.Signal(syscall.SIGCONT) }

// Save ends the member, keeps a copy of its files, and starts it again. The function that it returns
// ends it, gives it those files, and starts it: the store has gone back to an older state.
func (m *Member) Save(tb testing.TB) (restore func()) {
	tb.Helper()
	data, kept := filepath.Join(m.dir, "data"), filepath.Join(tb.TempDir(), "kept")
	swap := func(from, to string) {
		tb.Helper()
		m.Kill()
		if err := os.RemoveAll(to); err != nil {
			tb.Fatal(err)
		}
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			tb.Fatal(err)
		}
		if err := m.Start(); err != nil {
			tb.Fatal(err)
		}
	}
	swap(data, kept)
	return func() { tb.Helper(); swap(kept, data) }
}
