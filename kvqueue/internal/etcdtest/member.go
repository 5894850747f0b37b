//go:build linux

package etcdtest

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A Member is one process of etcd. It ends with the process that has started it, too.
type Member struct {
	Name     string
	Endpoint string // of clients: host and port
	program  string
	dir      string
	health   string // host and port of what says how the member is
	args     []string
	process  *exec.Cmd       // nil: it does not run
	over     chan struct{}   // closed when the process has ended
	report   strings.Builder // of the process; read when it has ended
}

// arguments are those of a member of a cluster.
func (s *settings) arguments(m *Member, client, peer, cluster string) []string {
	args := []string{
		"--name", m.Name, "--data-dir", m.data(), "--initial-cluster", cluster,
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--listen-metrics-urls", "http://" + m.health, "--metrics", "extensive",
		"--quota-backend-bytes", strconv.FormatInt(s.quota, 10),
		"--log-level", "warn",
	}
	if !s.sync {
		args = append(args, "--unsafe-no-fsync")
	}
	if s.tls {
		args = append(args, "--auto-tls", "--self-signed-cert-validity", "1")
	}
	return args
}

func (m *Member) data() string { return filepath.Join(m.dir, "data") }

// Certificate returns the file of the certificate of a member that speaks TLS.
func (m *Member) Certificate() string {
	return filepath.Join(m.data(), "fixtures", "client", "cert.pem")
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
	p, over, started := exec.Command(m.program, m.args...), make(chan struct{}), make(chan error)
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	m.report.Reset()
	p.Stdout, p.Stderr = &m.report, &m.report
	go func() {
		runtime.LockOSThread() // it is the end of this thread that ends the member
		err := p.Start()
		started <- err
		if err == nil {
			_ = p.Wait()
			close(over)
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	m.process, m.over = p, over
	return nil
}

// await waits until a member that was launched is ready, or has ended, or for longer than a busy
// machine takes. One that is not ready is killed.
func (m *Member) await() error {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	look, late := time.NewTicker(10*time.Millisecond), time.NewTimer(2*time.Minute)
	defer look.Stop()
	defer late.Stop()
	for ended := false; !ended; {
		answer, err := client.Get("http://" + m.health + "/readyz")
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-look.C:
		case <-m.over:
			ended = true
		case <-late.C:
			ended = true
		}
	}
	m.Kill()
	said := m.report.String()
	return fmt.Errorf("%s is not ready: %s", m.Name, said[max(0, len(said)-1000):])
}

// Kill ends a member as kill -9 does, and waits for its end. One that was stopped ends, too.
func (m *Member) Kill() {
	if m.process == nil {
		return
	}
	_ = m.process.Process.Kill()
	<-m.over
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
	kept := filepath.Join(tb.TempDir(), "kept")
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
	swap(m.data(), kept)
	return func() { tb.Helper(); swap(kept, m.data()) }
}

// program returns where etcd is: where tools/needs.sh builds it, for no distribution has the version, or
// in the path.
var program = sync.OnceValues(func() (string, error) {
	if out, err := exec.Command("go", "env", "GOPATH").Output(); err == nil {
		first, _, _ := strings.Cut(strings.TrimSpace(string(out)), string(os.PathListSeparator))
		path := filepath.Join(first, "bin", "etcd")
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return exec.LookPath("etcd")
})
