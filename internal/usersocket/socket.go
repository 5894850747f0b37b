// Package usersocket makes and reaches the socket of a process that serves a file to others of
// the same user.
package usersocket

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
)

// maxPath is how long the path of a socket may be everywhere: systems keep it in a
// little more than a hundred bytes, and zero it at the end.
const maxPath = 100

// within calls f with a path of no more than maxPath bytes that leads to path, which
// exists. It is valid as long as f runs.
func within(path string, f func(short string) error) error {
	if len(path) <= maxPath {
		return f(path)
	}
	dir, err := os.MkdirTemp("", "ambit")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	link := filepath.Join(dir, "l")
	if len(link)+len("/s") > maxPath {
		return fmt.Errorf("the folder for temporary files, %s, has a long name: set TMPDIR to one with a short name", os.TempDir())
	}
	if err := os.Symlink(path, link); err != nil {
		return err
	}
	return f(link)
}

// Dial connects to the socket at path.
func Dial(path string) (conn net.Conn, err error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	err = within(path, func(short string) error {
		conn, err = net.DialTimeout("unix", short, time.Second)
		return err
	})
	return conn, err
}

// Listen listens on a socket that appears at path when it is ready, in place of the one
// of a process that has ended. It is made in a folder that only this user may enter, so
// nobody else can connect before its rights are set. remove takes it away. Only the
// process that has the file may call it.
func Listen(path string) (l net.Listener, remove func(), err error) {
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != os.ModeSocket {
		return nil, nil, fmt.Errorf("%s is in the way: move it, or name another file", path)
	}
	dir := path + ".new"
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return nil, nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	err = within(dir, func(short string) error {
		l, err = net.Listen("unix", filepath.Join(short, "s"))
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // it will have another name
	made := filepath.Join(dir, "s")
	if err = os.Chmod(made, 0o600); err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	ours, _ := os.Lstat(path)
	return l, func() {
		// Somebody may have put another file and its socket in the place of ours.
		if info, err := os.Lstat(path); err == nil && ours != nil && os.SameFile(info, ours) {
			_ = os.Remove(path)
		}
	}, nil
}
