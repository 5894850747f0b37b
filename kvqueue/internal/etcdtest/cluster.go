//go:build linux

package etcdtest

import (
	"context"
	"fmt"
	"os"
	"strings"
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

// An Option changes how members are started.
type Option func(*settings)

type settings struct {
	quota     int64 // 0: that of etcd
	sync, tls bool
}

// Quota is how many bytes the file of a member may have before the cluster takes no more.
func Quota(bytes int64) Option { return func(s *settings) { s.quota = bytes } }

// Sync has members wait for their disks, as etcd does by itself: for measurements. Without it
// they do not, which the end of a process cannot tell.
func Sync() Option { return func(s *settings) { s.sync = true } }

// TLS has members speak TLS with their clients, by certificates that they have made themselves. See
// [Member.Certificate].
func TLS() Option { return func(s *settings) { s.tls = true } }

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
	path, err := program()
	switch {
	case err != nil && os.Getenv("CI") == "true":
		tb.Fatal("etcd 3.6 is not installed: tools/needs.sh builds it")
	case err != nil:
		tb.Skip("etcd 3.6 is not installed: tools/needs.sh builds it")
	}
	var s settings
	for _, o := range options {
		o(&s)
	}
	scheme := "http://"
	if s.tls {
		scheme = "https://"
	}
	c, peers, list := &Cluster{}, []string{}, []string{}
	for i := range members {
		peers = append(peers, "http://127.0.0.1:"+clitest.FreePort(tb))
		list = append(list, fmt.Sprintf("m%d=%s", i, peers[i]))
	}
	for i, peer := range peers {
		m := &Member{
			Name: fmt.Sprintf("m%d", i), Endpoint: "127.0.0.1:" + clitest.FreePort(tb),
			program: path, dir: tb.TempDir(), health: "127.0.0.1:" + clitest.FreePort(tb),
		}
		m.args = s.arguments(m, scheme+m.Endpoint, peer, strings.Join(list, ","))
		c.Members = append(c.Members, m)
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
