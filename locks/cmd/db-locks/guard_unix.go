//go:build unix

package main

import (
	"io"
	"os/exec"
	"strconv"
)

// guard starts a process that kills a process group when this program has gone without a call
// of stop, as by KILL. The system then kills the command of exec, on Linux, and not what that has
// started.
func guard(group int) (stop func(), err error) {
	script := `trap "" INT TERM HUP QUIT; read -r word || kill -s KILL -- "-$1"`
	cmd := exec.Command("/bin/sh", "-c", script, "sh", strconv.Itoa(group))
	in, err := cmd.StdinPipe() // the system closes it with this program
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return func() {}, err
	}
	return func() {
		_, _ = io.WriteString(in, "the command has ended\n")
		_ = cmd.Wait()
	}, nil
}
