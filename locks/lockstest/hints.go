package lockstest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
)

// testHintsOfBarging has one permit given back that is of no use to the first who waits, but
// to one behind it that need not wait for it.
func testHintsOfBarging(t *testing.T, f *Fixture) {
	if traits := f.Store.Traits(); !traits.Hints || traits.Simple {
		return
	}
	for round := range 20 { // a request may be forgotten before its hint comes, on a busy machine
		key := fmt.Sprint("s", round)
		hints, stop := f.Other.Listen(f.name(key))
		defer stop()
		a, b, first, behind := f.permit(3), f.permit(3), f.permit(3, many(3)), f.permit(3, many(2))
		behind.Barging = true
		f.granted(f.Store, key, a)
		f.granted(f.Store, key, b)
		f.refused(f.Store, key, first)
		f.refused(f.Other, key, behind)
		for quiet := false; !quiet; { // hints that nobody asked for
			select {
			case <-hints:
			case <-time.After(100 * time.Millisecond):
				quiet = true
			}
		}
		f.release(f.Store, key, a)
		select {
		case <-hints:
			return
		case <-time.After(locks.WaiterLife):
		}
	}
	require.Fail(t, "no hint came")
}
