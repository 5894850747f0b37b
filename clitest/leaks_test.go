//go:build unix

package clitest

import (
	"os"
	"os/exec"
	"os/signal"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

// planted names the fault that the test binary is to have when a test runs it
// again.
const planted = "CLITEST_PLANTED"

// rerun runs one test of this binary in a process of its own.
func rerun(t *testing.T, test, fault string) *Process {
	return Start(t, func(cmd *exec.Cmd) {
		cmd.Env = append(cmd.Environ(), planted+"="+fault)
	}, os.Args[0], "-test.run=^"+test+"$", "-test.v")
}

// TestToPlantIn is what it is told to be.
func TestToPlantIn(t *testing.T) {
	switch os.Getenv(planted) {
	case "leak":
		go func() { select {} }()
	case "bubble":
		synctest.Test(t, func(*testing.T) {
			signals := make(chan os.Signal, 1)
			signal.Notify(signals, os.Interrupt)
			signal.Stop(signals)
		})
	case "leak and failure":
		go func() { select {} }()
		t.Error("failed for a reason")
	}
}

func TestGoroutineThatIsLeftFailsTheTests(t *testing.T) {
	for _, test := range []struct {
		fault  string
		status int
		says   string
	}{
		{"", 0, ""},
		{"leak", 1, "left behind: found unexpected goroutines"},
		{"leak and failure", 1, ""}, // the failure may be why
	} {
		t.Run(test.fault, func(t *testing.T) {
			t.Parallel()
			p := rerun(t, "TestToPlantIn", test.fault)
			assert.Equal(t, test.status, p.Wait())
			if test.says == "" {
				assert.NotContains(t, p.Stderr(), "left behind")
			} else {
				assert.Contains(t, p.Stderr(), test.says)
				assert.Contains(t, p.Stderr(), "clitest.TestToPlantIn")
			}
		})
	}
}

func TestSignalsMayBeWatchedInABubble(t *testing.T) {
	p := rerun(t, "TestToPlantIn", "bubble")
	assert.Equal(t, 0, p.Wait(), p.Stdout())
}
