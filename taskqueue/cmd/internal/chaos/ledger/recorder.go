package ledger

import (
	"context"
	"sync"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// A Recorder is a store that writes down what it is told by the store below it.
type Recorder struct {
	taskqueue.Store
	Journal *Journal

	mu   sync.Mutex
	last map[string]call // by worker and queue
}

// A call is a claim that may be repeated.
type call struct {
	nonce string
	began int64
}

// began returns when a claim was sent first, and whether this is again: it answers with
// what the first has got.
func (r *Recorder) began(c *store.ClaimRequest) (at int64, again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last = map[string]call{}
	}
	of := c.Worker + " " + c.Queue
	if last := r.last[of]; last.nonce == c.Nonce {
		return last.began, true
	}
	r.last[of] = call{c.Nonce, Now()}
	return r.last[of].began, false
}

// Claim writes down what was claimed.
func (r *Recorder) Claim(ctx context.Context, c store.ClaimRequest) (taskqueue.Claimed, error) {
	began, again := r.began(&c)
	got, err := r.Store.Claim(ctx, c)
	if err != nil || len(got.Tasks) == 0 {
		return got, err
	}
	all := make([]Entry, len(got.Tasks))
	for i, t := range got.Tasks {
		now := t.StartedAt // the clock may have been put back before the claim was repeated
		if !again && got.Now.Before(now) {
			now = got.Now
		}
		all[i] = Entry{Kind: Claimed, Began: began, ID: t.ID, Token: t.Token,
			Now: now.UnixMicro(), Due: t.DueAt.UnixMicro(), Enqueued: t.EnqueuedAt.UnixMicro(),
			First: t.Attempt == 1 && t.Failures+t.Crashes+t.Releases == 0}
	}
	return got, r.Journal.Write(all...)
}

// Settle writes down what is told, and what the store says to that.
func (r *Recorder) Settle(ctx context.Context, queue string, outcomes []store.Outcome) ([]store.SettleResult, error) {
	began := Now()
	all := make([]Entry, len(outcomes))
	for i, o := range outcomes {
		all[i] = Entry{Kind: Settling, ID: o.ID, Token: o.Token, Outcome: o.Kind}
	}
	if err := r.Journal.Write(all...); err != nil {
		return nil, err
	}
	results, err := r.Store.Settle(ctx, queue, outcomes)
	if err != nil {
		return results, err
	}
	for i := range all {
		all[i].Kind, all[i].At, all[i].Began, all[i].Answer = Settled, 0, began, results[i]
	}
	return results, r.Journal.Write(all...)
}
