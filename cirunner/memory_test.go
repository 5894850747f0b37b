//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// peak returns the most memory that a process has had, in megabytes. It has to
// be alive.
func peak(t *testing.T, pid int) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	for line := range strings.Lines(string(data)) {
		var kb int
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kb); err == nil {
			return kb >> 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

// A step writes a gigabyte, some of it as one line. It goes through; what is kept
// of it is the limit's affair.
func TestAGigabyteStreamsThrough(t *testing.T) {
	t.Parallel()
	megabytes := 1024
	if testing.Short() || raceEnabled {
		megabytes = 12
	}
	p := newProject(t, fmt.Sprintf(`
talks:
  script:
    - head -c %dM /dev/zero | tr '\0' x
    - echo; (yes "$(printf %%01000d 1)" || true) | head -c %dM
    - echo; echo "the end"; touch $GO.end
  after_script: ["until test -e $GO; do sleep 0.01; done"]
`, megabytes/2, megabytes/2))
	mark := p.signalFile()
	run := p.start("-log-limit", "4000000")
	run.WaitFor("[talks] cirunner: the log has reached its limit of 4000000 bytes")
	// However long it takes: a gigabyte is a minute's work where others work as well.
	_, err := async.Poll(t.Context(), async.Every(hundredth), func(context.Context) (bool, bool, error) {
		_, err := os.Stat(mark + ".end")
		return true, err == nil, nil
	}).Await(t.Context(), 0)
	require.NoError(t, err)
	used := peak(t, run.Pid())
	require.NoError(t, os.WriteFile(mark, nil, 0o644))
	assert.Equal(t, 0, run.Wait())
	most := 64
	if raceEnabled {
		most = 256
	}
	t.Logf("%d MB through %d MB", megabytes, used)
	assert.Less(t, used, most)
	log := p.read(".cirunner/1/logs/001-talks.log")
	assert.Less(t, len(log), 4_001_000)
	assert.Contains(t, log, "reached its limit of 4000000 bytes")
	assert.Less(t, len(run.Stdout()), 4_100_000, "the limit is that of what is printed, too")
	p.nothingIsLeft()
}

// Without a limit every byte is in the file.
func TestTheLogIsComplete(t *testing.T) {
	t.Parallel()
	p := newProject(t, `
counts: {script: ["seq 1 10000; printf unended"]}
beside: {script: ["seq 1 10000"]}
`)
	run := p.start("-j", "2")
	assert.Equal(t, 0, run.Wait())
	var want strings.Builder
	for i := 1; i <= 10000; i++ {
		fmt.Fprintln(&want, i)
	}
	log := p.read(".cirunner/1/logs/001-counts.log")
	assert.True(t, strings.HasSuffix(log, want.String()+"unended\ncirunner: job succeeded\n"))
	shown := map[string]*strings.Builder{"[counts] ": {}, "[beside] ": {}}
	for line := range strings.Lines(run.Stdout()) {
		if len(line) > 9 && shown[line[:9]] != nil && line[9] >= '0' && line[9] <= '9' {
			shown[line[:9]].WriteString(line[9:])
		}
	}
	assert.Equal(t, want.String(), shown["[counts] "].String(), "lines are whole, and in their order")
	assert.Equal(t, want.String(), shown["[beside] "].String())
	p.nothingIsLeft()
}
