package lockstest

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/locks"
)

// childEnv holds what a child process of the matrix is to do.
const childEnv = "AMBIT_LOCKSTEST_CHILD"

// A childConfig is what a child process is told.
type childConfig struct {
	Client  string
	URL     string
	Journal string
	Tenant  string
	Key     string
	Size    int // 0: a mutex
	Lease   time.Duration
	Hold    time.Duration // how long a body lasts
	Deaf    bool          // the body does not look at its ctx
	Panics  bool          // now and then the body panics
	Insists bool          // the first that could not be given back is given back by its version
	Peer    bool          // Peer takes the lock
}

// A Locker is another library for locks: it runs body while it has the lock of a key, on
// the server of a URL, with a lease.
type Locker func(ctx context.Context, url, key string, lease time.Duration, body func(ctx context.Context)) error

// Peer is the library that [Overlaps] looks at. It is set before [Main] is called.
var Peer Locker

// Main is for the TestMain of a package that tests a store. It has eight tests run beside each
// other, for most of their time is waiting, unless -parallel says otherwise. In a child
// process of [Matrix] it does the work of the child and does not return.
func Main() {
	config := os.Getenv(childEnv)
	if config == "" {
		_ = flag.Set("test.parallel", "8") // there is this flag in every test binary
		return
	}
	if err := child(config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child takes a lock again and again, until its stdin ends.
func child(config string) error {
	var c childConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return err
	}
	j, err := OpenJournal(c.Journal, c.Client)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	m, done, err := c.manager(ctx)
	if err != nil {
		return err
	}
	j.Write(Event{Kind: Ready})
	for n := 0; ctx.Err() == nil; n++ {
		c.once(ctx, j, m, n)
	}
	return done()
}

// manager opens the store. done closes it. There is none for [Peer].
func (c *childConfig) manager(ctx context.Context) (m *locks.Manager, done func() error, err error) {
	if c.Peer {
		return nil, func() error { return nil }, nil
	}
	store, err := locks.Open(ctx, c.URL)
	for err != nil && ctx.Err() == nil { // the server may be down just now
		_ = async.Sleep(ctx, 50*time.Millisecond)
		store, err = locks.Open(ctx, c.URL)
	}
	if err != nil {
		return nil, nil, err
	}
	m, err = locks.New(store, locks.Tenant(c.Tenant), locks.Lease(c.Lease), locks.Owner(c.Client))
	return m, store.Close, err
}

// once takes the lock once, and writes down what it sees. m is nil for [Peer], which has no tokens: a
// later grant has a greater time.
func (c *childConfig) once(ctx context.Context, j *Journal, m *locks.Manager, n int) {
	e, version := Event{Key: c.Key}, ""
	write := func(kind string) {
		e.Kind = kind
		j.Write(e)
	}
	body := func(ctx context.Context) error {
		hold := locks.From(ctx)
		if e.Token = int64(Now()); hold != nil {
			e.Token, e.Slot, version = hold.Token(), hold.Slot(), hold.Version()
		}
		write(Granted)
		c.act(ctx, j, hold, e)
		write(Left)
		if c.Panics && n%3 == 2 {
			panic("as asked")
		}
		return nil
	}
	err := guarded(func() error {
		switch {
		case c.Peer:
			return Peer(ctx, c.URL, c.Key, c.Lease, func(ctx context.Context) { _ = body(ctx) })
		case c.Size > 0:
			return m.WithPermit(ctx, c.Key, c.Size, body)
		}
		return m.With(ctx, c.Key, body)
	})
	switch {
	case err != nil:
		e.Text = err.Error()
	case c.Peer:
		e.Text = "this library does not say"
	}
	write(Returned)
	if c.Insists && version != "" && errors.Is(err, locks.ErrUnavailable) {
		c.Insists = false // once may be a slow machine, twice is a fault
		for errors.Is(err, locks.ErrUnavailable) && async.Sleep(ctx, 20*time.Millisecond) == nil {
			err = m.ReleaseVersion(ctx, c.Key, version)
		}
	}
	if err != nil || c.Peer {
		_ = async.Sleep(ctx, 20*time.Millisecond)
	}
}

// guarded makes a panic of the body an error.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}

// pace is how often a body writes down that it believes to have the lock, and still how
// long a process that stands still for no more does not count as one that was paused.
const pace, still = 5 * time.Millisecond, 40 * time.Millisecond

// act writes down, as long as the body lasts, that it believes to have the lock. A deaf
// body goes on when its ctx is done, and only its looks at Err are of interest. hold is nil
// for another library.
func (c *childConfig) act(ctx context.Context, j *Journal, hold *locks.Hold, e Event) {
	begin, before := Now(), Now()
	for {
		e.At = Now()
		lives := ctx.Err() == nil
		switch {
		case lives && e.At-before < still:
			e.Kind = Lives
			j.Write(e)
		case hold != nil && hold.Err() == nil:
			e.Kind = Acts
			j.Write(e)
		}
		before = e.At
		if e.At-begin > c.Hold || !lives && !c.Deaf {
			return
		}
		time.Sleep(pace)
	}
}
