//go:build unix

package proc

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ambit-go/ambit/clitest"
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
	os.Exit(clitest.LeakChecked(m).Run())
}
