//go:build unix

package sqlstore

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// buried makes n dead letters.
func buried(t *testing.T, s *Store, name string, n int) {
	for i := range n {
		add(t, s, newTask(fmt.Sprintf("%s%04d", name, i)))
	}
	got, err := claimAs(s, "buries", name+"/1", n, time.Minute)
	require.NoError(t, err)
	require.Len(t, got.Tasks, n)
	settleAs(t, s, store.Buried, got.Tasks...)
}

const lettersText = "SELECT count(*) FROM tq_task WHERE state = 6"

// A claim trims dead letters while another, which has trimmed the same, has not committed yet.
func TestClaimsAtTheSameTimeKeepMaxDeadLetters(t *testing.T) {
	all, pool, _ := pgStores(t, 2)
	buried(t, all[0], "d", 40)
	configure(t, all[0], "q", taskqueue.Settings{MaxDead: 25})
	hook(all[0], onceAt("INSERT INTO tq_worker", func() {
		_, err := claimAs(all[1], "w2", "2/1", 1, time.Minute)
		assert.NoError(t, err)
	}))
	_, err := claimAs(all[0], "w", "1/1", 1, time.Minute)
	require.NoError(t, err)
	assert.EqualValues(t, 25, number(t, pool, lettersText))
}

// A claim looks for dead letters that are not kept when this process has made some, when the setting
// is another, when there were more than a claim deletes, and each second: others may have made some.
func TestAClaimSeldomLooksForDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // all of it is within a second
		s, err := OpenFile(context.Background(), memory)
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		looks := 0
		hook(s, func(text string) {
			if text == surplusText {
				looks++
			}
		})
		after := func(want int, why string) {
			t.Helper()
			looks = 0
			s.fronts.by["q"].looked = time.Now()
			for range 5 {
				claimed(t, s, 0)
			}
			assert.Equal(t, want, looks, why)
		}
		keep := func(n int) { configure(t, s, "q", taskqueue.Settings{MaxDead: n}) }
		buried(t, s, "a", 150)
		after(0, "all are kept")
		keep(20)
		after(2, "it deletes 100 first")
		buried(t, s, "b", 1)
		after(1, "this process has made one")
		keep(10)
		after(1, "fewer are kept")
		time.Sleep(wholeEvery)
		looks = 0
		claimed(t, s, 0)
		assert.Equal(t, 1, looks, "others may have made some")
	})
}
