package servers

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ambit-go/ambit/clitest"
)

// Etcd starts a member of etcd that is a cluster by itself, with more arguments. It does not wait
// for its disk, unless there are any: a process that is killed cannot tell.
func Etcd(t testing.TB, args ...string) *Server {
	t.Helper()
	return etcd(t, 1, "http", args)[0].start()
}

// EtcdTLS starts a member that talks TLS, with these files: the certificate that those of clients
// are signed by, and its own certificate and key. The URL does not name them.
func EtcdTLS(t testing.TB, ca, cert, key string) *Server {
	t.Helper()
	health := "127.0.0.1:" + clitest.FreePort(t)
	s := etcd(t, 1, "https", []string{
		"--unsafe-no-fsync", "--client-cert-auth", "--trusted-ca-file", ca, "--cert-file", cert, "--key-file", key,
		"--listen-metrics-urls", "http://" + health,
	})[0]
	s.URL = "etcds://" + s.Address
	s.ready = func() error { return healthy(health) }
	return s.start()
}

// EtcdCluster starts a cluster of so many members. The URL of each is that of all.
func EtcdCluster(t testing.TB, members int) []*Server {
	t.Helper()
	all := etcd(t, members, "http", nil)
	for _, s := range all { // none answers before most run
		s.t.Cleanup(s.Kill)
		ready := s.ready
		s.ready = func() error { return nil }
		s.Start()
		s.ready = ready
	}
	for _, s := range all {
		s.await()
	}
	return all
}

func etcd(t testing.TB, members int, scheme string, args []string) []*Server {
	t.Helper()
	path := etcdProgram(t)
	var all []*Server
	var peers, cluster, clients []string
	for i := range members {
		peers, clients = append(peers, "http://127.0.0.1:"+clitest.FreePort(t)), append(clients, "127.0.0.1:"+clitest.FreePort(t))
		cluster = append(cluster, fmt.Sprintf("m%d=%s", i, peers[i]))
	}
	if len(args) == 0 {
		args = []string{"--unsafe-no-fsync"}
	}
	for i, address := range clients {
		s := &Server{URL: "etcd://" + strings.Join(clients, ","), Network: "tcp", Address: address, Dir: t.TempDir(), t: t}
		s.command = func() *exec.Cmd {
			return exec.Command(path, append([]string{
				"--name", fmt.Sprintf("m%d", i), "--data-dir", s.Dir, "--log-level", "error",
				"--listen-client-urls", scheme + "://" + address, "--advertise-client-urls", scheme + "://" + address,
				"--listen-peer-urls", peers[i], "--initial-advertise-peer-urls", peers[i],
				"--initial-cluster", strings.Join(cluster, ","),
			}, args...)...)
		}
		s.ready = func() error { return healthy(address) }
		all = append(all, s)
	}
	return all
}

func healthy(address string) error {
	answer, err := http.Get("http://" + address + "/health")
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd says %s", answer.Status)
	}
	return nil
}

// etcdProgram finds etcd where tools/needs.sh builds it, for no distribution has the version, or
// in the path.
func etcdProgram(t testing.TB) string {
	t.Helper()
	if out, err := exec.Command("go", "env", "GOPATH").Output(); err == nil {
		list := filepath.SplitList(strings.TrimSpace(string(out)))
		path := filepath.Join(append(list, "")[0], "bin", "etcd")
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return program(t, "etcd")
}
