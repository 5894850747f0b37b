package servers

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Etcd starts a member of etcd that is a cluster by itself, with more arguments. It does not wait
// for its disk, unless they say so: a process that is killed cannot tell.
func Etcd(t testing.TB, args ...string) *Server {
	t.Helper()
	path, dir, clients, peers := etcdProgram(t), t.TempDir(), port(t), "http://127.0.0.1:"+port(t)
	address := "127.0.0.1:" + clients
	s := &Server{URL: "etcd://" + address, Network: "tcp", Address: address, t: t}
	s.command = func() *exec.Cmd {
		all := []string{
			"--data-dir", dir, "--listen-client-urls", "http://" + address, "--advertise-client-urls", "http://" + address,
			"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "default=" + peers,
			"--log-level", "error",
		}
		if len(args) == 0 {
			all = append(all, "--unsafe-no-fsync")
		}
		return exec.Command(path, append(all, args...)...)
	}
	s.ready = func() error {
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
	return s.start()
}

// etcdProgram finds etcd where tools/needs.sh builds it, for no distribution has the version, or
// in the path.
func etcdProgram(t testing.TB) string {
	t.Helper()
	if out, err := exec.Command("go", "env", "GOPATH").Output(); err == nil {
		path := filepath.Join(filepath.SplitList(string(out[:max(len(out)-1, 0)]))[0], "bin", "etcd")
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return program(t, "etcd")
}
