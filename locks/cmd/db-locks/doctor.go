package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/locks"
)

// A finding is a line of doctor.
type finding struct {
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	Text  string `json:"text"`
}

// doctor tries on a lock of its own what is needed, and says how long it takes. Settings of
// the server by which locks may get lost are told by the store when it is opened.
func doctor(ctx context.Context, p *program, _ *line) error {
	key := fmt.Sprintf("db-locks doctor %d", time.Now().UnixNano())
	var failed error
	say := func(check string, err error, format string, args ...any) error {
		f := finding{check, err == nil, fmt.Sprintf(format, args...)}
		if err != nil {
			f.Text, failed = err.Error(), err
		}
		mark := map[bool]string{true: "ok  ", false: "FAIL"}[f.OK]
		return p.print(f, "%s %s: %s", mark, f.Check, f.Text)
	}
	traits := p.store.Traits()
	if err := say("store", nil, "%s, shortest lease %v, hints %v", traits.Name, traits.MinLease, traits.Hints); err != nil {
		return err
	}
	if advised, ok := p.store.(interface{ Advice() string }); ok {
		if err := say("take note", nil, "%s", advised.Advice()); err != nil {
			return err
		}
	}
	const rounds = 20
	var waited time.Duration
	var tokens []int64
	var err error
	for range rounds {
		begin := time.Now()
		err = p.m.With(ctx, key, func(ctx context.Context) error {
			tokens = append(tokens, locks.From(ctx).Token())
			return nil
		}, locks.Wait(10*time.Second))
		if waited += time.Since(begin); err != nil {
			break
		}
	}
	if err := say("take and give back", err, "%v each, over %d rounds", (waited / rounds).Round(time.Microsecond), rounds); err != nil {
		return err
	}
	for i := 1; i < len(tokens) && err == nil; i++ {
		if tokens[i] <= tokens[i-1] {
			err = fmt.Errorf("token %d came after %d: %w", tokens[i], tokens[i-1], locks.ErrConflict)
		}
	}
	if err := say("fencing tokens increase", err, "%d of them", len(tokens)); err != nil {
		return err
	}
	skew, err := p.skew(ctx, key)
	if err := say("clock of the store", err, "%v ahead of the one here; nothing depends on that", skew); err != nil {
		return err
	}
	err = p.m.Delete(ctx, key, "")
	if err := say("forget the lock", err, "done"); err != nil {
		return err
	}
	return failed
}

// skew returns by how much the clock of the store is ahead of that of this machine.
func (p *program) skew(ctx context.Context, key string) (time.Duration, error) {
	before := time.Now()
	hold, err := p.m.Acquire(ctx, key, locks.Wait(10*time.Second))
	if err != nil {
		return 0, err
	}
	after := time.Now()
	record, err := p.m.Get(ctx, key)
	if releaseErr := hold.Release(ctx); err == nil {
		err = releaseErr
	}
	if err != nil || len(record.Holders) == 0 {
		return 0, err
	}
	middle := before.Add(after.Sub(before) / 2)
	return record.Holders[0].Acquired.Sub(middle).Round(time.Millisecond), nil
}
