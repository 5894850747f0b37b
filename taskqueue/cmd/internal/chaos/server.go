//go:build linux

package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed clock.c.txt
var clockSource []byte

// buildClock compiles what puts the clock of a server forward and back.
func buildClock(dir string) (library string, err error) {
	library = filepath.Join(dir, "clock.so")
	cmd := exec.Command("cc", "-x", "c", "-O2", "-shared", "-fPIC", "-o", library, "-")
	cmd.Stdin = bytes.NewReader(clockSource)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cc: %w: %s", err, out)
	}
	return library, nil
}

// A server is a Redis server that is killed and started again.
type server struct {
	dir     string // what is lost with it
	socket  string
	fsync   string
	library string
	port    string // for a replica
	log     *os.File
	client  *redis.Client // past the proxy

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{} // closed when cmd has ended
}

func newServer(dir, data, fsync, library string) (*server, error) {
	s := &server{dir: data, socket: filepath.Join(dir, "s"), fsync: fsync, library: library}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	_, s.port, _ = net.SplitHostPort(l.Addr().String())
	_ = l.Close()
	if s.log, err = os.Create(filepath.Join(dir, "redis.log")); err != nil {
		return nil, err
	}
	s.client = redis.NewClient(&redis.Options{Network: "unix", Addr: s.socket, MaxRetries: 5, ReadTimeout: 20 * time.Second})
	return s, s.setClock(0)
}

func (s *server) clockFile() string { return filepath.Join(filepath.Dir(s.socket), "clock") }

// setClock puts the wall clock of the server forward by d.
func (s *server) setClock(d time.Duration) error {
	f, err := os.OpenFile(s.clockFile(), os.O_CREATE|os.O_WRONLY, 0o600) // not truncated: it is mapped
	if err != nil {
		return err
	}
	_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(int64(d/time.Second))), 0)
	return errors.Join(err, f.Close())
}

// start starts it if it does not run, and returns when it answers.
func (s *server) start(ctx context.Context) error {
	s.mu.Lock()
	if s.cmd == nil {
		_ = os.Remove(s.socket)
		cmd := exec.Command("redis-server", "--bind", "127.0.0.1", "--port", s.port, "--repl-diskless-sync-delay", "0", "--unixsocket", s.socket, "--dir", s.dir, "--save", "",
			"--appendonly", "yes", "--appendfsync", s.fsync, "--aof-load-truncated", "yes", "--auto-aof-rewrite-percentage", "0")
		cmd.Env = append(os.Environ(), "LD_PRELOAD="+s.library, "CHAOS_CLOCK="+s.clockFile())
		cmd.Stdout, cmd.Stderr = s.log, s.log
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			s.mu.Unlock()
			return fmt.Errorf("%w: install it: apt-get install redis-server", err)
		}
		done := make(chan struct{})
		s.cmd, s.done = cmd, done
		go func() {
			_ = cmd.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			s.cmd = nil
			close(done)
		}()
	}
	done := s.done
	s.mu.Unlock()
	for late := time.After(time.Minute); ; {
		if s.client.Ping(ctx).Err() == nil {
			return nil
		}
		select {
		case <-done:
			return fmt.Errorf("redis-server has ended: %s", lastOf(s.log.Name()))
		case <-late:
			return fmt.Errorf("redis-server does not answer: %s", lastOf(s.log.Name()))
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// signal sends it a signal, and reports whether it runs.
func (s *server) signal(sig syscall.Signal) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cmd != nil && s.cmd.Process.Signal(sig) == nil
}

// kill kills it, and returns when it has ended.
func (s *server) kill() bool {
	s.mu.Lock()
	done := s.done
	s.mu.Unlock()
	if !s.signal(syscall.SIGKILL) {
		return false
	}
	<-done
	return true
}

// aof returns the file to which it appends, and its size.
func (s *server) aof() (name string, size int64) {
	all, _ := filepath.Glob(filepath.Join(s.dir, "appendonlydir", "*.incr.aof"))
	if len(all) == 0 {
		return "", 0
	}
	name = all[len(all)-1]
	if i, err := os.Stat(name); err == nil {
		size = i.Size()
	}
	return name, size
}

// tear leaves the first half of a step at the end of the file, as an end of power does.
func (s *server) tear() error {
	name, _ := s.aof()
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("*1\r\n$5\r\nMULTI\r\n*4\r\n$7\r\nHINCRBY\r\n$12\r\ntq:{chaos}:c\r\n$6\r\nn:done\r\n$1\r\n1\r\n*4\r\n$4\r\nHSET\r\n$12\r\ntq:{cha")
	return errors.Join(err, f.Close())
}

// fix cuts the file where its last whole step ends. The server does that itself (see
// aof-load-truncated), and is wrong when the step was cut within a command: it keeps
// the MULTI, and when it is started the next time the half of the step is carried out.
func (s *server) fix() error {
	manifests, _ := filepath.Glob(filepath.Join(s.dir, "appendonlydir", "*.manifest"))
	for _, name := range manifests {
		cmd := exec.Command("redis-check-aof", "--fix", name)
		cmd.Stdin = strings.NewReader("y\n")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("redis-check-aof: %w: %s", err, out)
		}
	}
	return nil
}
