//go:build unix

// Package fulldisk is for tests of what writes files: it has the disk be full.
package fulldisk

import (
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
)

// Alone runs the test once more in a process of its own, whose files alone are limited,
// and reports whether this is that process. It fails the test if that process fails.
func Alone(t *testing.T) bool {
	t.Helper()
	const env = "AMBIT_TEST_FULL_DISK"
	if os.Getenv(env) == t.Name() {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), env+"="+t.Name())
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Fatalf("%v: %s", err, out)
	}
	return false
}

// Limit has no file of this process grow beyond n bytes, until the test ends or undo is
// called: so does a disk that is full.
func Limit(t *testing.T, n int) (undo func()) {
	t.Helper()
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	undo = func() {
		_ = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was)
		signal.Reset(syscall.SIGXFSZ)
	}
	t.Cleanup(undo)
	limited := was
	put(&limited.Cur, n)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limited); err != nil {
		t.Fatal(err)
	}
	return undo
}

// put is an assignment: systems differ in the type.
func put[N int64 | uint64](to *N, n int) { *to = N(n) }
