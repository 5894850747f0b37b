package lockstest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestATestIsBegunAnewWhereTheMachineWasSlow: it is not left out, and what is wrong each time is found.
func TestATestIsBegunAnewWhereTheMachineWasSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs, tenants := 0, map[string]bool{}
		slowFor := func(times int) (failed int) {
			runs = 0
			f := &Fixture{t: t}
			patient(Test{"", func(_ *testing.T, f *Fixture) {
				runs++
				tenants[f.Tenant] = true
				f.waits.Store(time.Now().UnixNano())
				time.Sleep(3 * time.Second)
				found := runs > times
				if f.counts(found); !found {
					failed++
				}
			}}).Run(t, f)
			return failed
		}
		require.Zero(t, slowFor(3))
		require.Equal(t, 4, runs)
		require.Len(t, tenants, 4)
		require.Equal(t, 1, slowFor(1000), "what is never found is a failure")
		require.Equal(t, 11, runs)
	})
}

func TestWhatIsNotFoundOnAQuickMachineIsNotAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		patient(Test{"", func(_ *testing.T, f *Fixture) {
			runs++
			f.waits.Store(time.Now().UnixNano())
			time.Sleep(time.Second)
			f.counts(false)
		}}).Run(t, &Fixture{t: t})
		require.Equal(t, 1, runs)
	})
}
