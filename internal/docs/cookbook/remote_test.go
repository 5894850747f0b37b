package cookbook

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

type signal string

// A machine is a session and its connection. Its command ends at one of the
// signals, or when the connection is closed.
type machine struct {
	endsAt signal
	stuck  bool // the server does not read: Signal blocks
	ended  chan error
	closed chan struct{}
	once   sync.Once
	mu     sync.Mutex
	got    []signal
}

var (
	errSignalled = errors.New("ended by a signal")
	errClosed    = errors.New("connection closed")
)

func newMachine(endsAt signal) *machine {
	return &machine{endsAt: endsAt, ended: make(chan error, 2), closed: make(chan struct{})}
}

func (m *machine) Run(command string) error {
	if command == "true" {
		return nil
	}
	return <-m.ended
}

func (m *machine) Signal(s signal) error {
	if m.stuck {
		<-m.closed
		return errClosed
	}
	m.mu.Lock()
	m.got = append(m.got, s)
	m.mu.Unlock()
	if s == m.endsAt {
		m.ended <- errSignalled
	}
	return nil
}

func (m *machine) Close() error {
	m.once.Do(func() {
		close(m.closed)
		m.ended <- errClosed
	})
	return nil
}

func TestARemoteCommandIsStoppedInStages(t *testing.T) {
	for name, c := range map[string]struct {
		endsAt signal
		stuck  bool
		took   time.Duration
		got    []signal
		err    error
	}{
		"ends on TERM":  {"TERM", false, time.Minute, []signal{"TERM"}, errSignalled},
		"ends on KILL":  {"KILL", false, time.Minute + 5*time.Second, []signal{"TERM", "KILL"}, errSignalled},
		"ignores both":  {"", false, time.Minute + 10*time.Second, []signal{"TERM", "KILL"}, errClosed},
		"does not read": {"", true, time.Minute + 10*time.Second, nil, errClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := asynctest.Context(t)
				m := newMachine(c.endsAt)
				m.stuck = c.stuck
				start := time.Now()
				err := RunRemote(ctx, m, m, "sleep 600", time.Minute, 5*time.Second)
				require.InDelta(t, c.took, time.Since(start), float64(time.Millisecond))
				require.ErrorIs(t, err, c.err)
				var late *async.TimeoutError
				require.ErrorAs(t, err, &late)
				require.Equal(t, c.got, m.got)
			})
		})
	}
}

func TestARemoteCommandThatEndsGetsNoSignal(t *testing.T) {
	m := newMachine("TERM")
	require.NoError(t, RunRemote(asynctest.Context(t), m, m, "true", time.Minute, time.Second))
	require.Empty(t, m.got)
}

func TestACancelledRemoteCommandTellsTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(asynctest.Context(t))
		time.AfterFunc(time.Second, func() { cancel(errStopped) })
		m := newMachine("TERM")
		err := RunRemote(ctx, m, m, "sleep 600", 0, time.Second)
		require.ErrorIs(t, err, errStopped)
		require.ErrorIs(t, err, errSignalled)
	})
}
