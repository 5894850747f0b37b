//go:build unix

package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A command with a closed file would be started without it, and nobody told.
func TestAClosedFileIsAnError(t *testing.T) {
	files, _ := mine(t)
	f, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	for what, c := range map[string]Command{
		"stdin":         {Stdin: f, Stdout: newSign()},
		"output":        {Stdin: strings.NewReader("x"), Stdout: f, Stderr: f},
		"stderr":        {Stdout: newSign(), Stderr: f},
		"an extra file": {Stdout: newSign(), ExtraFiles: []*os.File{nil, f}},
	} {
		c.Args = []string{"true"}
		result, err := Run(t.Context(), c)
		assert.ErrorIs(t, err, os.ErrClosed)
		assert.ErrorContains(t, err, "which cannot be given to the command")
		assert.ErrorContains(t, err, "true: "+what+" is "+f.Name())
		assert.Zero(t, result.Pid)
	}
	after, _ := mine(t)
	assert.Len(t, after, len(files), "before: %v\nafter: %v", files, after)
}

func init() { helpers["starved"] = starved }

// starved runs a command with fewer and fewer descriptors left, and prints how often
// it was started, how often not for want of descriptors, and how many it has lost.
func starved() {
	limit := syscall.Rlimit{Cur: 64, Max: 64}
	must(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	_, _ = Run(context.Background(), Command{Args: []string{"true"}, Stdout: newSign()}) // opens what stays open
	var held []*os.File
	free := func() (n int) {
		var all []*os.File
		for ; ; n++ {
			f, err := os.Open("/dev/null")
			if err != nil {
				break
			}
			all = append(all, f)
		}
		for _, f := range all {
			_ = f.Close()
		}
		return n
	}
	before := free()
	started, refused := 0, 0
	for range before {
		_, err := Run(context.Background(), Command{
			Args: []string{"true"}, Stdin: strings.NewReader("x"), Stdout: newSign(), Stderr: newSign(),
		})
		switch {
		case err == nil:
			started++
		case errors.Is(err, syscall.EMFILE):
			refused++
		default:
			fmt.Println(err)
		}
		f, err := os.Open("/dev/null")
		must(err)
		held = append(held, f)
	}
	for _, f := range held {
		_ = f.Close()
	}
	fmt.Printf("started %v, refused %v, lost %d", started > 0, refused > 0, before-free())
}

// A file that was opened for a command that could not be started is closed.
func TestACommandThatIsNotStartedForWantOfDescriptorsLosesNone(t *testing.T) {
	out, err := exec.Command(helper(t, "starved")).CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, "started true, refused true, lost 0", string(out))
}
