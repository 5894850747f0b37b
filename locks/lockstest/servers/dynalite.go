package servers

import (
	_ "embed"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ambit-go/ambit/clitest"
)

//go:embed shim/dynalite.js
var outlives []byte

// Dynalite starts dynalite, a server that speaks the protocol of DynamoDB and keeps its
// tables in a folder. By itself it would end when a connection is reset in the middle of a
// request.
func Dynalite(t testing.TB) *Server {
	t.Helper()
	path, dir, p := program(t, "dynalite"), t.TempDir(), clitest.FreePort(t)
	first := filepath.Join(t.TempDir(), "first.js")
	if err := os.WriteFile(first, outlives, 0o644); err != nil {
		t.Fatal(err)
	}
	s := &Server{
		URL:     "dynamodb:locks?region=us-east-1&endpoint=http://127.0.0.1:" + p,
		Network: "tcp", Address: "127.0.0.1:" + p, t: t,
	}
	s.command = func() *exec.Cmd {
		cmd := exec.Command(path, "--host", "127.0.0.1", "--port", p, "--path", dir, "--createTableMs", "50")
		cmd.Env = append(os.Environ(), `NODE_OPTIONS=--require="`+first+`"`)
		return cmd
	}
	s.ready = func() error {
		answer, err := http.Get("http://" + s.Address)
		if err == nil {
			err = answer.Body.Close()
		}
		return err
	}
	return s.start()
}
