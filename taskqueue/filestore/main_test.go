//go:build unix

package filestore_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/filestore"
)

// The tests start this program once more, as another process that uses a file.
const roleVariable = "TASKQUEUE_TEST_ROLE"

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVariable); role {
	case "":
		os.Exit(m.Run())
	case "owner":
		owner(os.Args[1])
	case "enqueuer":
		enqueuer(os.Args[1])
	}
}

// owner has the file until its input ends.
func owner(path string) {
	s, err := filestore.Open(path)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("open")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := s.Close(); err != nil {
		fmt.Println(err)
	}
}

// enqueuer prints the id of every task that the store has acknowledged, and the first
// error.
func enqueuer(path string) {
	s, err := filestore.Open(path)
	for i := 0; err == nil; i++ {
		t := taskqueue.Task{ID: fmt.Sprint(i), Type: "t"}
		if _, err = s.Enqueue(context.Background(), "q", []taskqueue.NewTask{{Task: t}}); err == nil {
			fmt.Println(t.ID)
		}
	}
	fmt.Println("error:", err)
}

// another starts another process with a role. lines is what it prints.
func another(t *testing.T, role, path string) (cmd *exec.Cmd, lines *bufio.Scanner, end io.Closer) {
	t.Helper()
	cmd = exec.Command(os.Args[0], path)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, bufio.NewScanner(out), in
}
