package servers

import (
	_ "embed"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

//go:embed shim/clock.c.txt
var clockSource []byte

// FakeClock starts the server again with a clock of the wall that [Server.SetClock] sets. A
// library that a C compiler makes stands between the server and the clock of the machine;
// the clocks by which the server waits go on as they are. Without a compiler the test is
// skipped, or fails where CI=true.
func (s *Server) FakeClock() {
	s.t.Helper()
	dir, err := os.MkdirTemp("", "clock-")
	if err == nil {
		s.t.Cleanup(func() { _ = os.RemoveAll(dir) })
		err = os.Chmod(dir, 0o755) // the server may be another user
	}
	if err != nil {
		s.t.Fatal(err)
	}
	library := clockLibrary(s.t, dir)
	s.clock = filepath.Join(dir, "offset")
	if err := os.WriteFile(s.clock, make([]byte, 8), 0o644); err != nil {
		s.t.Fatal(err)
	}
	plain := s.command
	s.command = func() *exec.Cmd {
		cmd := plain()
		if cmd.Env == nil {
			cmd.Env = os.Environ()
		}
		cmd.Env = append(cmd.Env, "LD_PRELOAD="+library, "AMBIT_CLOCK="+s.clock)
		return cmd
	}
	s.Restart()
}

// SetClock has the clock of the server be ahead of that of the machine by so much, at once.
func (s *Server) SetClock(ahead time.Duration) {
	s.t.Helper()
	f, err := os.OpenFile(s.clock, os.O_WRONLY, 0)
	if err == nil { // the same file: the server has it in its memory
		_, err = f.Write(binary.NativeEndian.AppendUint64(nil, uint64(ahead.Microseconds())))
		_ = f.Close()
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func clockLibrary(t testing.TB, dir string) string {
	t.Helper()
	source, library := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so")
	if err := os.WriteFile(source, clockSource, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(program(t, "cc", "gcc"), "-O1", "-shared", "-fPIC", "-o", library, source).CombinedOutput()
	if err != nil {
		t.Fatalf("making a clock: %v\n%s", err, out)
	}
	return library
}
