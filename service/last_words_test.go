package service

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A slowError takes its time to say what it is.
type slowError struct{ takes time.Duration }

func (e slowError) Error() string {
	time.Sleep(e.takes)
	return "disk gone"
}

// The program is about to say what has failed when the third signal comes: it is said
// before the process ends, once.
func TestTheThirdSignalWaitsForWhatIsBeingSaid(t *testing.T) {
	for name, test := range map[string]struct {
		takes time.Duration
		want  string
	}{
		"in time":           {lastWords / 2, "service.test: disk gone\n"},
		"it takes too long": {time.Hour, ""},
	} {
		t.Run(name, func(t *testing.T) {
			said := filepath.Join(t.TempDir(), "stderr")
			stderr, err := os.Create(said)
			require.NoError(t, err)
			before := os.Stderr
			os.Stderr = stderr
			defer func() { os.Stderr = before; assert.NoError(t, stderr.Close()) }()
			synctest.Test(t, func(t *testing.T) {
				p := newProgramInBubble(nil)
				begin, failed := time.Now(), slowError{test.takes}
				p.exit = func(int) {
					text, err := os.ReadFile(said)
					assert.NoError(t, err)
					assert.Equal(t, test.want, string(text))
					assert.Equal(t, min(test.takes, lastWords), time.Since(begin))
				}
				p.note(failed, nil)
				go p.say(failed)
				synctest.Wait()
				for range 3 {
					p.signals <- syscall.SIGTERM
				}
				p.follow()
				time.Sleep(2 * time.Hour) // what is too late is said all the same: exit does not end this process
			})
		})
	}
}
