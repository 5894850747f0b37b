package proc

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const parentEnv = "AMBIT_PROC_PARENT"

// TestParentOfACommand is not a test of its own: it is the parent that the test below
// kills.
func TestParentOfACommand(t *testing.T) {
	if os.Getenv(parentEnv) == "" {
		t.Skip("the parent of another test")
	}
	_, _ = Run(context.Background(), Command{
		Args: []string{"sleep", "1000"}, DieWithParent: os.Getenv(parentEnv) == "die",
		Started: func(pid int) { fmt.Println("pid", pid) },
	})
}

func TestACommandDiesWithAParentThatIsKilled(t *testing.T) {
	for _, dies := range []bool{true, false} {
		t.Run(fmt.Sprint(dies), func(t *testing.T) {
			parent := exec.Command(os.Args[0], "-test.run=^TestParentOfACommand$")
			parent.Env = append(os.Environ(), parentEnv+"="+map[bool]string{true: "die", false: "live"}[dies])
			out, err := parent.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, parent.Start())
			pid := 0
			for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
				if text, ok := strings.CutPrefix(lines.Text(), "pid "); ok {
					pid, err = strconv.Atoi(text)
					require.NoError(t, err)
				}
			}
			require.NotZero(t, pid)
			require.NoError(t, parent.Process.Kill())
			_ = parent.Wait()
			if !dies {
				require.NoError(t, syscall.Kill(pid, 0), "without the option it goes on")
				require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
				return
			}
			require.Eventually(t, func() bool { return gone(pid) }, time.Minute, 5*time.Millisecond)
		})
	}
}

// gone says whether a process has ended; one that nobody has waited for yet has, too.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}
