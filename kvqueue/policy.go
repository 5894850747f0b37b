package kvqueue

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A Policy says what becomes of the items of a queue that fail. It belongs to the queue: it is kept
// in the store, and is the same for every handle. An item is judged by the policy of its claim.
type Policy struct {
	MaxAttempts int `json:"maxAttempts"` // see the option of this name
	MaxCrashes  int `json:"maxCrashes"`  // see the option of this name; 0: no end
	// RetryDelay is that after the first failure, and MaxRetryDelay the most.
	RetryDelay    time.Duration `json:"retryDelay"`
	MaxRetryDelay time.Duration `json:"maxRetryDelay"`
	Retention     time.Duration `json:"retention"` // see the option of this name
	TimeLimit     time.Duration `json:"timeLimit"` // see the option of this name; 0: none
}

// defaultPolicy is that of a queue for which nobody has chosen one.
var defaultPolicy = Policy{MaxAttempts: 25, RetryDelay: time.Second, MaxRetryDelay: time.Minute, Retention: 24 * time.Hour}

// A policyOption is an option that is about the queue, and not about a handle.
type policyOption func(*Policy) error

func (o policyOption) apply(s *settings) error {
	s.policy = append(s.policy, o)
	return o(new(Policy))
}

// MaxAttempts makes an item a dead letter when n runs of it have failed, 25 by default: with the
// default [RetryDelay] that is after about 20 minutes. It is an option of the queue: see
// [Queue.Configure].
func MaxAttempts(n int) Option {
	return policyOption(func(p *Policy) error {
		if n < 1 {
			return invalid("MaxAttempts", "%d is less than 1", n)
		}
		p.MaxAttempts = n
		return nil
	})
}

// MaxCrashes makes an item a dead letter when the process that had it went away n times; by default
// none is. Those do not count for [MaxAttempts]. It is an option of the queue: see [Queue.Configure].
func MaxCrashes(n int) Option {
	return policyOption(func(p *Policy) error {
		if n < 1 {
			return invalid("MaxCrashes", "%d is less than 1", n)
		}
		p.MaxCrashes = n
		return nil
	})
}

// RetryDelay is how long an item that has failed waits before it goes back to its place: first after
// the first failure, twice as long after each that follows, but most at the most, and up to half
// of it more or less. By default that is from a second to a minute: an item that always fails must not
// keep all behind it from being claimed. 0 and 0 are no delay. An item stays claimed meanwhile: when
// the handle is closed it goes back at once, and if this process goes away, too. It is an option of
// the queue: see [Queue.Configure].
func RetryDelay(first, most time.Duration) Option {
	return policyOption(func(p *Policy) error {
		if first < 0 || most < first {
			return invalid("RetryDelay", "from %v to %v: the first is 0 or more, and the other no less", first, most)
		}
		p.RetryDelay, p.MaxRetryDelay = first, most
		return nil
	})
}

// Retention is for how long an [ID] stands at least, though its item is gone: 24 h by default, and from 1 s
// to a year. It goes when its item is gone, within twice that time (on etcd, within 30 s more), if a process uses
// the queue then that adds ids or claims items. A longer retention is for ids that still stand, too; a shorter
// one holds when a tenth of the old one is over. It is an option of the queue: see [Queue.Configure].
func Retention(d time.Duration) Option {
	return policyOption(func(p *Policy) error {
		if d < time.Second || d > 365*24*time.Hour {
			return invalid("Retention", "%v is not from 1s to 8760h", d)
		}
		p.Retention = d
		return nil
	})
}

// delay is how long an item waits that has failed so often.
func (p Policy) delay(failures uint64) time.Duration {
	if p.RetryDelay == 0 {
		return 0
	}
	return async.Jitter(0.5, async.Backoff(p.RetryDelay, p.MaxRetryDelay))(int(min(failures, 64)))
}

// Policy returns the policy of the queue, as this handle knows it. It asks nobody: a handle that
// waits for items, or has waited, is told of changes, and any other knows what was so at its Open.
func (q *Queue) Policy() Policy { return *q.policy.Load() }

// Configure changes the policy of the queue for all handles, open ones too, and returns what it is
// then. Options that are not given stay as they are. [Open] takes the same options: they are used
// if no handle and no Configure has given any before; otherwise those of the queue stay, and if
// they differ, the observer is told by [Overruled].
//
// It blocks until the store has answered, or ctx ends. An option of handles, such as [TTL], is an
// [*InvalidError]. An error that matches [ErrUnknown] says that the policy was changed, or not.
func (q *Queue) Configure(ctx context.Context, options ...Option) (Policy, error) {
	s := settings{}
	for _, o := range options {
		if _, is := o.(policyOption); !is {
			return Policy{}, invalid("Configure", "an option is of handles and not of queues: MaxAttempts, MaxCrashes, RetryDelay, TimeLimit and Retention are")
		} else if err := o.apply(&s); err != nil {
			return Policy{}, err
		}
	}
	for {
		stored, err := q.readPolicy(ctx)
		if err != nil {
			return Policy{}, err
		}
		p := s.ruled(stored.Policy)
		err = q.putPolicy(ctx, stored, p)
		if err == nil {
			return q.Policy(), nil
		} else if !errors.Is(err, ErrConflict) {
			return Policy{}, err
		}
	}
}

// ruled returns a policy with the options that were given.
func (s *settings) ruled(p Policy) Policy {
	for _, o := range s.policy {
		_ = o(&p) // it was tried before
	}
	return p
}

// A storedPolicy is what stands in the store.
type storedPolicy struct {
	Policy
	rev Rev // of its key; 0: there is none, or none that this package wrote
	any Rev // of its key, whoever wrote it
}

func policyOf(r Result) storedPolicy {
	if len(r.Pairs) == 0 {
		return storedPolicy{Policy: defaultPolicy}
	}
	p := r.Pairs[0]
	s, err := decodePolicy(p)
	if err != nil { // Audit names it
		return storedPolicy{Policy: defaultPolicy, any: p.Rev}
	}
	return storedPolicy{s, p.Rev, p.Rev}
}

func decodePolicy(p Pair) (s Policy, err error) {
	s.Retention = defaultPolicy.Retention // of a program that knows no ids
	d := json.NewDecoder(bytes.NewReader(p.Value))
	if err = d.Decode(&s); err != nil || s.MaxAttempts < 1 || s.MaxCrashes < 0 || s.RetryDelay < 0 || s.MaxRetryDelay < s.RetryDelay ||
		s.TimeLimit < 0 || s.Retention < time.Second {
		return s, fmt.Errorf("kvqueue: the store holds a policy that this package did not write: %q", p.Value)
	}
	return s, nil
}

func (q *Queue) readPolicy(ctx context.Context) (storedPolicy, error) {
	results, rev, err := q.kv.Read(ctx, Range{Begin: q.lay.policy()})
	if err != nil {
		return storedPolicy{}, err
	}
	s := policyOf(results[0])
	q.unlearn(rev)
	q.learn(s)
	return s, nil
}

// putPolicy writes the policy, if it still is as it was read.
func (q *Queue) putPolicy(ctx context.Context, was storedPolicy, p Policy) error {
	guard := Guard{Key: q.lay.policy(), Is: Unchanged, Rev: was.any}
	if was.any == 0 {
		guard = Guard{Key: q.lay.policy(), Is: Absent}
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	rev, err := q.kv.Commit(ctx, []Guard{guard}, []Write{{Key: q.lay.policy(), Value: text}})
	if err == nil {
		q.learn(storedPolicy{p, rev, rev})
	}
	return err
}

// unlearn lets an older policy be learned if the revisions of the store have gone back, as in a cluster
// that was restored. If it only was read late, the later one is learned again.
func (q *Queue) unlearn(at Rev) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if at < q.policyRev {
		q.policyRev = 0
	}
}

// learn takes in a policy, unless a later one is known.
func (q *Queue) learn(s storedPolicy) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s.rev > q.policyRev {
		q.policyRev = s.rev
		q.policy.Store(&s.Policy)
	}
}

// agree makes the options of this handle the policy of the queue, if it has none. If several do
// so at the same time one wins, and the others are told.
func (q *Queue) agree(ctx context.Context) error {
	for {
		stored, err := q.readPolicy(ctx)
		wants := q.set.ruled(stored.Policy)
		switch {
		case err != nil:
			return err
		case len(q.set.policy) == 0:
			return nil
		case stored.any == 0:
			err = q.putPolicy(ctx, stored, wants)
			if errors.Is(err, ErrNoSpace) { // it is so for this handle, until there is room
				q.policy.Store(&wants)
				return nil
			} else if err == nil || ignore(err) != nil {
				return err
			}
		default:
			if wants != stored.Policy {
				q.tell(Report{Kind: Overruled, Items: 1, Why: fmt.Sprintf("the queue has %+v, and this handle was opened with %+v", stored.Policy, wants)})
			}
			return nil
		}
	}
}
