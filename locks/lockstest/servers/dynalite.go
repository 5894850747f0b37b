package servers

import (
	"net/http"
	"os/exec"
	"testing"
)

// Dynalite starts dynalite, a server that speaks the protocol of DynamoDB and keeps its
// tables in a folder.
func Dynalite(t testing.TB) *Server {
	t.Helper()
	path, dir, p := program(t, "dynalite"), t.TempDir(), port(t)
	s := &Server{
		URL:     "dynamodb:locks?region=us-east-1&endpoint=http://127.0.0.1:" + p,
		Network: "tcp", Address: "127.0.0.1:" + p, t: t,
	}
	s.command = func() *exec.Cmd {
		return exec.Command(path, "--host", "127.0.0.1", "--port", p, "--path", dir, "--createTableMs", "50")
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
