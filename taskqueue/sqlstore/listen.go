package sqlstore

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// A notice holds one lock for all commits of the database that send any, so it is sent only if
// a process has written down that it sleeps. Which is read without a lock: what is missed in
// between is found when the process looks by itself. A serializable transaction does not read it; see headText.
const notifyText = "SELECT pg_notify($1, $2) WHERE current_setting('transaction_isolation') = 'serializable' " +
	"OR EXISTS (SELECT 1 FROM tq_worker WHERE queue = $3 AND sleeps > $4)"

// sleepsFor is how long a process is taken to sleep in a queue when it has said so. It says
// so again in time.
const sleepsFor = 30 * time.Second

// connectTime is how long a first Wait takes at most until others are listened to.
const connectTime = 2 * time.Second

// sleeps has others know that this process waits for a hint about a queue. It reports whether
// it had to write that down.
func (s *Store) sleeps(ctx context.Context, queue string) (told bool, err error) {
	now := time.Now().UnixMicro()
	s.hints.mu.Lock()
	known := s.hints.hintLocked(queue).sleeps > now
	s.hints.mu.Unlock()
	if known {
		return false, nil
	}
	ready := time.NewTimer(connectTime)
	defer ready.Stop()
	select { // what is told from now on is heard
	case <-s.hints.ready:
	case <-ready.C:
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	err = s.db.transact(ctx, writes, func(t tx) error {
		st := newStep(t, queue)
		if err := t.run(query{clock: &st.now}); err != nil {
			return err
		}
		until := st.now.steady + sleepsFor.Microseconds()
		slot := "p:" + s.client + "/sleep"
		return t.end(st.noteRow(noteText, slot, []byte{}, 0, 0, 0),
			statement("UPDATE tq_worker SET sleeps = $3 WHERE queue = $1 AND worker = $2", queue, slot, until))
	})
	if err != nil {
		return false, err
	}
	s.hints.mu.Lock()
	defer s.hints.mu.Unlock()
	s.hints.hintLocked(queue).sleeps = now + (sleepsFor / 2).Microseconds()
	return true, nil
}

// channel is where processes listen.
func (s *Store) channel() string { return s.db.dialect().read("tq_wake") }

// listen receives hints on a connection of its own until ctx is done. A pool of one
// connection would have nothing left.
func listen(ctx context.Context, s *Store, db *server) {
	pause := 50 * time.Millisecond
	tried := sync.OnceFunc(func() { close(s.hints.ready) })
	for ctx.Err() == nil {
		began := time.Now()
		receive(ctx, s, db, tried)
		tried()
		if pause = min(2*pause, 5*time.Second); time.Since(began) > time.Minute {
			pause = 50 * time.Millisecond
		}
		sleep(ctx, pause)
	}
}

// receive receives hints until the connection fails.
func receive(ctx context.Context, s *Store, db *server, listens func()) {
	c, err := pgx.ConnectConfig(ctx, db.pool.Config().ConnConfig)
	if err != nil {
		return
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = c.Close(ctx)
	}()
	if _, err := c.Exec(ctx, "LISTEN "+pgx.Identifier{s.channel()}.Sanitize()); err != nil {
		return
	}
	s.hints.wakeAll() // nobody has told what was before
	listens()
	if !hears(ctx, s, db, c) {
		poll(ctx, s)
		return
	}
	s.hints.wakeAll() // what came instead
	for {
		waiting, cancel := context.WithTimeout(ctx, 30*time.Second)
		n, err := c.WaitForNotification(waiting)
		quiet := err != nil && waiting.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err == nil:
			// This process has woken its own when it was done.
			if client, queue, ok := strings.Cut(n.Payload, " "); ok && client != s.client {
				s.hints.wake(queue)
			}
		case !quiet:
			return
		case !hears(ctx, s, db, c): // a network that is silent does not say so
			poll(ctx, s)
			return
		}
	}
}

const (
	// hearTime is how long a notice takes at most.
	hearTime = 2 * time.Second
	// pollTime is how often those who wait look by themselves where notices do not come, and deafTime
	// how long until it is tried anew whether they do.
	pollTime = 100 * time.Millisecond
	deafTime = 30 * time.Second
)

// hears reports whether notices come to a connection that listens: a pooler which gives each
// transaction another connection lets LISTEN succeed, and nothing arrives. It sends one by the pool.
func hears(ctx context.Context, s *Store, db *server, c *pgx.Conn) bool {
	ctx, cancel := context.WithTimeout(ctx, hearTime)
	defer cancel()
	if _, err := db.pool.Exec(ctx, "SELECT pg_notify($1, $2)", s.channel(), s.client+" "); err != nil {
		return c.Ping(ctx) == nil // others have all connections, maybe
	}
	_, err := c.WaitForNotification(ctx)
	return err == nil
}

// errDeaf is what a Wait returns, once, where notices do not come.
var errDeaf = errors.New("taskqueue: postgres: no notices come, which a pooler in transaction mode keeps: idle workers look 10 times a second")

// poll has those who wait look by themselves for a while.
func poll(ctx context.Context, s *Store) {
	s.hints.deaf(errDeaf)
	for range deafTime / pollTime {
		if sleep(ctx, pollTime); ctx.Err() != nil {
			return
		}
		s.hints.wakeAll()
	}
}
