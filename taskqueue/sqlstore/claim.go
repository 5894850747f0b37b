package sqlstore

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// A claiming is a claim in its transaction.
type claiming struct {
	*step
	s *Store
	r store.ClaimRequest
	c taskqueue.Claimed

	// As the first look has found it.
	nonce     []byte // of the last claim of the worker
	base      int64  // the first of its tokens
	settings  taskqueue.Settings
	lastToken int64
	boot      string
	seen      sight
	firstEnd  int64 // when the first lease ends; 0: there is none
	// firstForget is when the first ended task is to be forgotten; 0: there is none.
	firstForget int64
	deltas      int64 // not 0: there are counts of transactions of users
	releases    int64 // not 0: tasks have ended that have not told all their children

	front   dues
	lowered uint64
	heads   dues
	limits  limits
	keys    *keyLimits // nil: the queue has never had any
	tasks   []*record  // that it claims
	changed []*record  // and all that it has changed, and not saved yet
	moved   bool       // heads are not what they were
	parked  int        // how many tasks its last look has parked
	skipped bool       // something was due and could not be had: others are at it
	stirs   bool       // it has leases to end, or children to tell, before it takes anything
	ahead   *ahead     // what its look has taken with it; nil: nothing
	full    bool       // and that was as much as the claim may have
}

// Claim is a method of taskqueue.Store.
func (s *Store) Claim(ctx context.Context, r store.ClaimRequest) (taskqueue.Claimed, error) {
	if err := errors.Join(taskqueue.CheckName("queue", r.Queue), taskqueue.CheckClaim(r)); err != nil {
		return taskqueue.Claimed{}, err
	}
	seen := s.hints.seen(r.Queue)
	var c *claiming
	err := s.db.transact(ctx, writes, func(t tx) error {
		c = &claiming{step: newStep(t, r.Queue), s: s, r: r}
		return c.run()
	})
	if err != nil {
		return taskqueue.Claimed{}, err
	}
	s.fronts.found(r.Queue, c.front, c.lowered, len(c.tasks) > 0 && c.plain())
	if len(c.dead) > 0 {
		s.fronts.buried(r.Queue)
	}
	if c.sooner {
		s.hints.wake(r.Queue)
	}
	c.c.Seen = seen
	c.c.Now = time.UnixMicro(c.now.wall).UTC()
	for _, one := range c.tasks {
		c.c.Tasks = append(c.c.Tasks, one.info(c.now))
	}
	return c.c, nil
}

// lookAlone is look. The same claim may be going on: two claims of a worker that has no row wait for each other at
// the new one.
func (c *claiming) lookAlone() error {
	err := c.look()
	for err == nil && c.s.postgres && c.nonce == nil && c.r.Nonce != "" {
		if err = c.t.run(c.noteRow(noteText, "w:"+c.r.Worker, []byte{}, 0, 0, 0)); err == nil {
			err = c.look()
		}
	}
	return err
}

func (c *claiming) run() error {
	if err := c.lookAlone(); err != nil {
		return err
	}
	nonce := []byte(c.r.Nonce)
	switch {
	case c.nonce == nil || len(nonce) == 0:
	case string(c.nonce) == string(nonce):
		return c.again()
	case isLate(c.r.Nonce, string(c.nonce)):
		c.c.NextDue = c.nowTime()
		return c.t.end(c.note("w:"+c.r.Worker, true))
	}
	c.base = 0
	if err := c.reap(); err != nil {
		return err
	}
	if err := c.releaseAll(); err != nil {
		return err
	}
	trim, err := c.trim()
	if err != nil {
		return err
	}
	most := min(max(c.r.Max, 0), taskqueue.MaxBatch)
	if err := c.foldOthers(); err != nil {
		return err
	}
	n, next, err := c.allowed(most)
	if err != nil {
		return err
	}
	if err := c.bringBack(); err != nil {
		return err
	}
	if err := c.take(n); err != nil {
		return err
	}
	return c.finish(n, most, next, trim)
}

func (c *claiming) nowTime() time.Time { return time.UnixMicro(c.now.wall).UTC() }

// isLate reports whether a nonce is of a claim before that of last, by the same worker.
func isLate(nonce, last string) bool {
	life, number, numbered := cutNonce(nonce)
	of, n, known := cutNonce(last)
	return numbered && known && life == of && number < n
}

// cutNonce cuts a nonce at its last slash, behind which there is a number.
func cutNonce(nonce string) (life string, number uint64, ok bool) {
	i := strings.LastIndexByte(nonce, '/')
	if i < 0 {
		return "", 0, false
	}
	number, err := strconv.ParseUint(nonce[i+1:], 10, 64)
	return nonce[:i], number, err == nil
}

var againText = "SELECT " + recordNames + " FROM tq_task WHERE queue = $1 AND state = 3 AND lease_end >= 0 AND worker = $2 AND token >= $3 AND token < $4 ORDER BY token {lock}"

// again answers a claim that is repeated: with what it got and still has.
func (c *claiming) again() error {
	args := []any{c.queue, c.r.Worker, c.base, c.base + taskqueue.MaxBatch}
	if err := c.t.run(append(c.seen.step(c.step), eachRow(againText, args, records(&c.tasks)))...); err != nil {
		return err
	}
	for _, r := range c.tasks {
		c.lend(r, c.r.Lease)
	}
	c.c.NextDue = c.nowTime()
	queries := append(save(c.tasks), c.noteClaim(), loadPayloads(c.tasks, nil))
	if err := c.t.end(queries...); err != nil {
		return err
	}
	room := taskqueue.MaxBatchBytes
	for _, r := range c.tasks {
		if room -= r.weight(); room < 0 {
			r.Progress = nil // what it has noted since then
		}
	}
	return nil
}

// noteClaim is what is remembered of a claim.
func (c *claiming) noteClaim() query {
	return c.noteRow(claimText, "w:"+c.r.Worker, []byte(c.r.Nonce), c.base, c.r.Lease.Microseconds(), c.now.steady)
}

// finish writes what the claim has changed, and finds out when the next could get something.
func (c *claiming) finish(n, most int, next time.Time, trim []query) error {
	var queries []query
	if !c.s.postgres && len(c.tasks) > 0 {
		queries = append(queries, statement("UPDATE tq_queue SET last_token = $2 WHERE queue = $1", c.queue, c.base+int64(len(c.tasks))-1))
		if err := c.readApart(); err != nil {
			return err
		}
	}
	if len(c.ended) > 0 { // what it was to claim has expired, or lost its payload
		if err := c.releaseAll(); err != nil {
			return err
		}
	}
	queries = append(queries, c.saveBegun())
	queries = append(append(append(queries, save(c.changed)...), trim...), c.limits.note(c, len(c.tasks))...)
	queries = append(queries, c.keys.note(c)...)
	if c.moved && !c.full {
		queries = append(queries, c.lookHeads())
	}
	// A task that was reaped need not be told to others if nothing of it is left.
	if c.sooner = c.sooner && len(c.tasks) == most; c.sooner {
		queries = append(queries, c.s.tell(c.step)...)
	}
	c.c.Dead = c.dead
	if err := c.t.end(append(queries, c.noteClaim())...); err != nil {
		return err
	}
	if c.skipped && len(c.tasks)+len(c.dead) == 0 { // others are at what is due: they are done soon
		next, n = c.nowTime().Add(10*time.Millisecond), 0
	}
	if c.full { // there may be more, which the next claim finds out
		c.c.NextDue = c.nowTime()
		return nil
	}
	c.nextDue(len(c.tasks) < n, next)
	return nil
}

// readApart reads the payloads of what is claimed on SQLite. A task whose payload is lost
// becomes a dead letter that says so.
func (c *claiming) readApart() error {
	found := map[*record]bool{}
	if err := c.t.run(loadPayloads(c.tasks, func(r *record) { found[r] = true })); err != nil {
		return err
	}
	kept := c.tasks[:0:0]
	for _, r := range c.tasks {
		if found[r] {
			kept = append(kept, r)
			continue
		}
		c.count(taskqueue.CountClaimed, -1)
		r.Attempt--
		r.begun = false
		r.fail("the store had lost its record")
		c.bury(r)
		if !slices.Contains(c.changed, r) {
			c.changed = append(c.changed, r)
		}
		if err := c.t.run(in(insertPayloads, [][]any{append([]any{r.Queue, r.ID}, r.payloadRow()...)})); err != nil {
			return err
		}
	}
	c.tasks = kept
	return nil
}

// nextDue notes when a claim could get something more. more: it has taken less than it was
// allowed, so nothing is due now.
func (c *claiming) nextDue(more bool, allowed time.Time) {
	next := int64(0)
	earlier := func(at int64) {
		if next == 0 || at < next {
			next = at
		}
	}
	if len(c.tasks) > 0 {
		if end := c.now.steady + c.r.Lease.Microseconds(); c.firstEnd == 0 || end < c.firstEnd {
			c.firstEnd = end
		}
	}
	if c.firstEnd > 0 {
		earlier(c.firstEnd - c.now.steady + c.now.wall)
	}
	if c.releases != 0 && c.released > 0 {
		earlier(c.now.wall)
	} else if c.releases != 0 { // others are at it
		earlier(c.now.wall + 10_000)
	}
	switch {
	case c.settings.Paused || c.limits.full:
	case !more && !allowed.IsZero():
		earlier(allowed.UnixMicro())
	default:
		for _, due := range c.heads {
			if due >= 0 {
				earlier(max(due, 1))
			}
		}
		if k := c.keys; k != nil && k.next > 0 {
			earlier(int64(k.next) - c.now.steady + c.now.wall)
		}
		if k := c.keys; k != nil && k.stale {
			earlier(c.now.wall)
		}
	}
	if next > 0 {
		c.c.NextDue = time.UnixMicro(max(next, c.now.wall)).UTC()
	}
}
