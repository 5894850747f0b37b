//go:build unix

package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// helpers are programs that the tests run: this binary under another name.
var helpers = map[string]func(){}

// helper returns the path of a program of helpers.
func helper(t testing.TB, name string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMain(m *testing.M) {
	if program, ok := helpers[filepath.Base(os.Args[0])]; ok {
		program()
		os.Exit(0)
	}
	if os.Getenv("GORACE") == "" {
		// A helper under the race detector would wait for a second when it exits.
		os.Setenv("GORACE", "atexit_sleep_ms=20")
	}
	status := m.Run()
	if err := goleak.Find(); status == 0 && err != nil {
		fmt.Fprintln(os.Stderr, "left behind:", err)
		status = 1
	}
	os.Exit(status)
}
