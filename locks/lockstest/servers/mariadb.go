package servers

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ambit-go/ambit/clitest"
)

// MariaDB starts a MariaDB server with an empty database. args are more settings, as
// "--max-connections=10". It does not wait for the disk, unless
// "--innodb-flush-log-at-trx-commit=1" is given: what it has stored outlives the process,
// not the machine.
func MariaDB(t testing.TB, args ...string) *Server {
	t.Helper()
	path, install, p := program(t, "mariadbd", "mysqld"), program(t, "mariadb-install-db", "mysql_install_db"), clitest.FreePort(t)
	dir, as := folder(t, "mysql")
	data := filepath.Join(dir, "data")
	run(t, as, install, "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", "--datadir="+data, "--tmpdir="+dir)
	first := filepath.Join(dir, "first.sql")
	sql := fmt.Sprintf("CREATE DATABASE IF NOT EXISTS locks;\nCREATE USER IF NOT EXISTS locks@'127.0.0.1' IDENTIFIED BY '%s';\nGRANT ALL ON locks.* TO locks@'127.0.0.1';\n", Password)
	if err := os.WriteFile(first, []byte(sql), 0o644); err != nil {
		t.Fatal(err)
	}
	all := append([]string{
		"--no-defaults", "--datadir=" + data, "--tmpdir=" + dir, "--bind-address=127.0.0.1", "--port=" + p, "--socket=" + filepath.Join(dir, "s"),
		"--pid-file=" + filepath.Join(dir, "pid"), "--init-file=" + first, "--innodb-flush-log-at-trx-commit=2",
		"--innodb-buffer-pool-size=64M", "--skip-name-resolve",
	}, args...)
	s := &Server{
		URL:     fmt.Sprintf("mysql://locks:%s@127.0.0.1:%s/locks", Password, p),
		Network: "tcp", Address: "127.0.0.1:" + p, t: t,
	}
	s.command = func() *exec.Cmd { return command(as, path, all...) }
	s.ready = func() error { return greets(s.Address) }
	return s.start()
}

// greets says whether a server sends the first packet of the protocol of MySQL, and no
// error in its place. The server listens only when its init file was run.
func greets(address string) error {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	var head [5]byte // length, number, version of the protocol
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return err
	}
	if head[4] != 10 {
		return errors.New("the server greets with an error")
	}
	return nil
}
