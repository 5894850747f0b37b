package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/btree"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/engine"
)

// An id without its record, or with one that cannot be read, becomes a dead letter that
// says so, and is never dropped.
func TestAnIDWithoutItsRecordBecomesADeadLetter(t *testing.T) {
	for name, harm := range map[string]func(d *db, k string){
		"lost":       func(d *db, k string) { d.m.Delete(k) },
		"unreadable": func(d *db, k string) { d.m.Set(k, []byte("{")) },
	} {
		for _, state := range []taskqueue.State{taskqueue.StateScheduled, taskqueue.StateRetrying} {
			t.Run(name+" "+state.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := &db{m: btree.NewMap[string, []byte](0)}
					s, err := engine.Open(t.Context(), d, nil)
					require.NoError(t, err)
					q, err := taskqueue.New(s)
					require.NoError(t, err)
					id, err := q.Enqueue(t.Context(), taskqueue.Task{Type: "t", Payload: []byte("p")})
					require.NoError(t, err)
					claim := func(nonce string) taskqueue.Claimed {
						got, err := s.Claim(t.Context(), taskqueue.ClaimRequest{Queue: q.Name(), Worker: "w", Nonce: nonce, Max: 1, Lease: time.Minute})
						require.NoError(t, err)
						return got
					}
					if state == taskqueue.StateRetrying {
						run := claim("1").Tasks[0]
						_, err := s.Settle(t.Context(), q.Name(), []taskqueue.Outcome{{Ref: taskqueue.Ref{ID: id, Token: run.Token}, Kind: taskqueue.Failed}})
						require.NoError(t, err)
					}
					var record string
					d.m.Ascend("t", func(k string, _ []byte) bool {
						record = k
						return false
					})
					require.True(t, strings.HasSuffix(record, id))
					harm(d, record)

					got := claim("2")
					assert.Empty(t, got.Tasks)
					assert.Equal(t, []string{id}, got.Dead)
					page, err := q.List(t.Context(), taskqueue.ListRequest{State: taskqueue.StateDead})
					require.NoError(t, err)
					require.Len(t, page.Tasks, 1)
					assert.Equal(t, id, page.Tasks[0].ID)
					assert.Contains(t, page.Tasks[0].LastError, "record")
					faults, err := s.Audit(t.Context(), q.Name())
					require.NoError(t, err)
					assert.Empty(t, faults)
				})
			})
		}
	}
}
