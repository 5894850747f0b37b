package filestore_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/filestore"
)

// edit changes the file itself, as a disk does, or another program.
func edit(t *testing.T, path string, f func(b *bbolt.Bucket) error) {
	t.Helper()
	b, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, b.Update(func(tx *bbolt.Tx) error { return f(tx.Bucket([]byte("taskqueue"))) }))
	require.NoError(t, b.Close())
}

func record(id string) []byte { return []byte("tq\x00" + id) }

// Records that are lost, or cannot be read, of tasks in every state.
func TestAsynq1144WhatLostItsRecordIsADeadLetterInEveryState(t *testing.T) {
	for name, lose := range map[string]func(b *bbolt.Bucket, id string) error{
		"lost":       func(b *bbolt.Bucket, id string) error { return b.Delete(record(id)) },
		"unreadable": func(b *bbolt.Bucket, id string) error { return b.Put(record(id), []byte("{")) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			path := filepath.Join(t.TempDir(), "tasks")
			s, err := filestore.Open(path)
			require.NoError(t, err)
			add := func(s taskqueue.Store, id string, change func(*taskqueue.Task)) taskqueue.Verdict {
				task := taskqueue.Task{ID: id, Type: "t", MaxFailures: 9, MaxCrashes: 9}
				change(&task)
				r, err := s.Enqueue(ctx, "q", []taskqueue.NewTask{{Task: task}})
				require.NoError(t, err)
				return r[0].Verdict
			}
			as := func(kind taskqueue.OutcomeKind, after time.Duration) func(string) {
				return func(id string) {
					got, err := s.Claim(ctx, taskqueue.ClaimRequest{Queue: "q", Worker: "w", Nonce: id, Max: 1, Lease: time.Minute})
					require.NoError(t, err)
					require.Len(t, got.Tasks, 1)
					require.Equal(t, id, got.Tasks[0].ID)
					if kind != 0 {
						_, err = s.Settle(ctx, "q", []taskqueue.Outcome{{Ref: taskqueue.Ref{ID: id, Token: got.Tasks[0].Token}, Kind: kind, After: after}})
						require.NoError(t, err)
					}
				}
			}
			nothing := func(*taskqueue.Task) {}
			for _, one := range []struct {
				id   string
				then func(string)
			}{{"running", as(0, 0)}, {"retrying", as(taskqueue.Failed, 0)}, {"dead", as(taskqueue.Buried, 0)}} {
				urgent := func(task *taskqueue.Task) { task.Priority = 7 }
				add(s, one.id, urgent)
				one.then(one.id)
				if one.id == "retrying" {
					_, err := s.Act(ctx, "q", "retrying", taskqueue.ActCancel) // out of the way of the next
					require.NoError(t, err)
				}
			}
			_, err = s.Act(ctx, "q", "retrying", taskqueue.ActRetry)
			require.NoError(t, err)
			as(taskqueue.Failed, 0)("retrying")
			add(s, "ready", func(task *taskqueue.Task) { task.UniqueKey = "k" })
			add(s, "sound", nothing)
			before, err := s.Stats(ctx, "q")
			require.NoError(t, err)
			require.NoError(t, s.Close())
			all := []string{"running", "retrying", "dead", "ready"}
			edit(t, path, func(b *bbolt.Bucket) error {
				for _, id := range all {
					require.NotNil(t, b.Get(record(id)))
					require.NoError(t, lose(b, id))
				}
				return nil
			})

			s, err = filestore.Open(path)
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			got, err := s.Claim(ctx, taskqueue.ClaimRequest{Queue: "q", Worker: "w", Nonce: "end", Max: 10, Lease: time.Minute})
			require.NoError(t, err)
			require.Len(t, got.Tasks, 1)
			assert.Equal(t, "sound", got.Tasks[0].ID)
			for _, id := range []string{"running", "retrying", "ready"} {
				i, err := s.Get(ctx, "q", id)
				require.NoError(t, err)
				assert.Equal(t, taskqueue.StateDead, i.State, id)
				assert.NotEmpty(t, i.LastError)
			}
			n, _, err := s.Purge(ctx, "q", taskqueue.StateDead, "")
			require.NoError(t, err)
			assert.Equal(t, 4, n)
			assert.Equal(t, taskqueue.Added, add(s, "next", func(task *taskqueue.Task) { task.UniqueKey = "k" }), "the key of a lost task is free")
			st, err := s.Stats(ctx, "q")
			require.NoError(t, err)
			for state := taskqueue.StateScheduled; state <= taskqueue.StateCancelled; state++ {
				want := map[taskqueue.State]int64{taskqueue.StateReady: 1, taskqueue.StateRunning: 1}[state]
				assert.Equal(t, want, st.States[state], "%v, before: %v", state, before.States)
			}
			faults, err := s.(taskqueue.Auditor).Audit(ctx, "q")
			require.NoError(t, err)
			assert.Empty(t, faults)
		})
	}
}
