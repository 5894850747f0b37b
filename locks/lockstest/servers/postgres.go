package servers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ambit-go/ambit/clitest"
)

// Password is that of the databases which have one: no error may show it.
const Password = "s3cr3t-of-the-store"

// Postgres starts a PostgreSQL server with an empty database. args are more settings, as
// "-c", "max_connections=10". It does not wait for the disk, unless "-c", "fsync=on" is
// given: what it has stored outlives the process, not the machine.
func Postgres(t testing.TB, args ...string) *Server {
	t.Helper()
	path, p := postgresProgram(t, "postgres"), clitest.FreePort(t)
	dir, as := folder(t, "postgres")
	secret := filepath.Join(dir, "password")
	if err := os.WriteFile(secret, []byte(Password), 0o644); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	run(t, as, postgresProgram(t, "initdb"), "-D", data, "-U", "postgres", "-E", "UTF8", "--locale=C", "-A", "scram-sha-256", "--pwfile", secret, "--no-sync")

	isReady := postgresProgram(t, "pg_isready")
	all := append([]string{"-D", data, "-h", "127.0.0.1", "-p", p, "-k", "", "-c", "fsync=off"}, args...)
	s := &Server{
		URL:     fmt.Sprintf("postgres://postgres:%s@127.0.0.1:%s/postgres?sslmode=disable", Password, p),
		Network: "tcp", Address: "127.0.0.1:" + p, t: t,
		quit: os.Interrupt, // it waits for no client
	}
	s.command = func() *exec.Cmd { return command(as, path, all...) }
	s.ready = func() error { return exec.Command(isReady, "-q", "-h", "127.0.0.1", "-p", p).Run() }
	return s.start()
}

// postgresProgram finds a program of PostgreSQL, which Debian keeps out of the PATH.
func postgresProgram(t testing.TB, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) == 0 {
		return program(t, name)
	}
	slices.Sort(found)
	return found[len(found)-1]
}
