package servers

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAKilledServerLeavesNoProcessBehind has PostgreSQL, which is many processes: one
// that is left keeps the next start from using the data.
func TestAKilledServerLeavesNoProcessBehind(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes are looked up in /proc")
	}
	s := Postgres(t)
	for range 2 {
		s.Pause()
		family := children(s.Pid())
		require.NotEmpty(t, family)
		s.Kill()
		for _, pid := range family {
			require.Eventually(t, func() bool {
				stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
				return err != nil || strings.Contains(string(stat), ") Z ")
			}, time.Minute, time.Millisecond, "process %d still runs", pid)
		}
		s.Start()
	}
}
