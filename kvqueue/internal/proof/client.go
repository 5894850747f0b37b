package proof

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ambit-go/ambit/kvqueue"
)

// A Client adds and takes items by one handle, ends them in all the ways that there are, and has
// a [Scribe] write it down.
type Client struct {
	Who    string
	Queue  *kvqueue.Queue
	Dice   *Dice
	Second time.Duration // for how long a second is meant
	Slow   int           // of so many handlers one takes longer than a session may live
	Groups int           // of which the values are that it adds, beside those of none
	IDs    int           // of which some of these are
	s      Scribe
	delays bool // what has failed does not come back at once
}

// NewClient opens a handle on the queue "q", whose steps s writes down. link is what lies between
// the handle and the store.
func NewClient(ctx context.Context, s Scribe, who string, d *Dice, kv kvqueue.KV, link func(kvqueue.KV) kvqueue.KV, options ...kvqueue.Option) (*Client, error) {
	c := &Client{Who: who, Dice: d, Second: time.Second, Slow: 12, s: s, delays: d.N(4) == 0} // if no other handle has chosen
	if c.delays {                                                                             // in place of the one of Limits
		options = append(options, kvqueue.RetryDelay(time.Millisecond, c.Second))
	}
	store := noted(s, who, "q", kv, link)
	q, err := kvqueue.Open(ctx, store, "q", append(options, kvqueue.CompactedElsewhere())...)
	for tries := 1; err != nil && tries < openTries && ctx.Err() == nil; tries++ {
		q, err = kvqueue.Open(ctx, store, "q", append(options, kvqueue.CompactedElsewhere())...)
	}
	if c.Queue = q; err == nil {
		c.delays = q.Policy().RetryDelay > 0
	}
	return c, err
}

// openTries is how many times a handle is opened: on a busy machine a store may not answer in the time that it is
// given.
const openTries = 10

// Direct is the link of a handle whose store answers.
func Direct(kv kvqueue.KV) kvqueue.KV { return kv }

// Close ends the handle, and its session.
func (c *Client) Close(ctx context.Context) error {
	c.s.Note(Entry{Kind: Over, Who: c.Who, At: c.s.Tick()})
	return c.Queue.Close(ctx)
}

func (c *Client) pause(ctx context.Context, seconds float64) {
	c.Dice.Pause(ctx, time.Duration(seconds*float64(c.Second)))
}

// begin notes that something is going to be asked for.
func (c *Client) begin(what string, items ...kvqueue.Item) (ids []int64) {
	for _, i := range items {
		id := c.s.Tick()
		c.s.Note(Entry{Kind: Began, ID: id, What: what, Who: c.Who, Value: string(i.Value), Key: i.Key.String(), Fence: int64(i.Fence)})
		ids = append(ids, id)
	}
	return ids
}

// ended and void note what has come of it. If neither does that is not known.
func (c *Client) ended(ids ...int64) {
	for _, id := range ids {
		c.s.Note(Entry{Kind: Ended, ID: id, At: c.s.Tick()})
	}
}

func (c *Client) void(ids ...int64) {
	for _, id := range ids {
		c.s.Note(Entry{Kind: Void, ID: id})
	}
}

// Produce adds a value, and perhaps does not wait for the answer: then it may be added at any
// later time. A call for an id is repeated then, with another value of the id.
func (c *Client) Produce(ctx context.Context, v string) {
	name, options := c.name()
	for unknown := true; unknown; v += "'" {
		unknown = c.add(ctx, v+name, options) && idOf(name) != ""
	}
}

// name chooses what id a value has, and what group, and says so behind it.
func (c *Client) name() (name string, options []kvqueue.AddOption) {
	if c.IDs > 0 && c.Dice.N(2) == 0 {
		name = fmt.Sprint("#", c.Dice.N(c.IDs))
		options = append(options, kvqueue.ID(idOf(name)))
	}
	if n := c.Dice.N(c.Groups + 1); n > 0 {
		name = fmt.Sprint(name, "@", n)
		options = append(options, kvqueue.Group(groupOf(name)))
	}
	return name, options
}

// add adds a value, and reports whether it is unknown what has come of it.
func (c *Client) add(ctx context.Context, v string, options []kvqueue.AddOption) (unknown bool) {
	id, cancel := c.s.Tick(), func() {}
	c.s.Note(Entry{Kind: Began, ID: id, What: Enqueue, Who: c.Who, Value: v})
	if c.Dice.N(5) == 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(c.Dice.N(int(c.Second/100))))
	}
	defer cancel()
	key, err := c.Queue.Add(ctx, []byte(v), options...)
	switch {
	case err == nil:
		c.s.Note(Entry{Kind: Ended, ID: id, At: c.s.Tick(), Key: key.String()})
	case errors.Is(err, kvqueue.ErrUnknown):
		return true
	default:
		c.void(id)
	}
	return false
}

// groupOf returns the group of a value, and idOf its id.
func groupOf(v string) string {
	_, group, _ := strings.Cut(v, "@")
	return group
}

func idOf(v string) string {
	v, _, _ = strings.Cut(v, "@")
	_, id, _ := strings.Cut(v, "#")
	return id
}

// Consume takes items until ctx ends. Those are good that are only acknowledged.
func (c *Client) Consume(ctx context.Context, good bool) {
	for ctx.Err() == nil {
		if err := c.take(ctx, good); err != nil && !errors.Is(err, errFails) {
			c.pause(ctx, 0.1)
		}
	}
}

// take takes some items.
func (c *Client) take(ctx context.Context, good bool) error {
	var atEnd []int64 // what the end of the handler asks for
	var had []kvqueue.Item
	err := c.Queue.Do(ctx, 1+c.Dice.N(2), func(ctx context.Context, items []kvqueue.Item) (err error) {
		had = items
		for _, i := range items {
			defer c.claimed(ctx, i)()
		}
		atEnd, err = c.handle(ctx, items, good)
		return err
	})
	switch {
	case ctx.Err() != nil && had != nil: // it was told to stop, before its end or after
		c.begin(Return, had...)
	case err == nil, err == errFails && !c.delays: // else something else has gone wrong, or they are held for a while
		c.ended(atEnd...)
	}
	return err
}

// claimed notes that a client has an item, and when its context ends because that is lost.
func (c *Client) claimed(ctx context.Context, i kvqueue.Item) (done func()) {
	e := Entry{Who: c.Who, Value: string(i.Value), Key: i.Key.String(), Attempt: i.Attempt, Fence: int64(i.Fence)}
	e.Kind, e.At = Claimed, c.s.Tick()
	c.s.Note(e)
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(over)
		if errors.Is(context.Cause(ctx), kvqueue.ErrLost) {
			e.Kind, e.At = Lapsed, c.s.Tick()
			c.s.Note(e)
		}
	})
	return func() {
		if !stop() {
			<-over
		}
	}
}

// handle works on items for a while and ends them: by a call, or as it returns.
func (c *Client) handle(ctx context.Context, items []kvqueue.Item, good bool) (atEnd []int64, err error) {
	switch {
	case good:
	case c.Dice.N(c.Slow) == 0:
		c.pause(ctx, 4)
	case c.Dice.N(2) == 0:
		c.pause(ctx, 0.02)
	}
	n := c.Dice.N(10)
	switch {
	case n < 3 || good && n < 6:
		return c.settle(items, Ack, func() error { return c.Queue.Ack(ctx, items...) })
	case n < 6 || good:
		return c.begin(Ack, items...), nil
	case n == 6:
		return c.settle(items, Fail, func() error { return c.Queue.Nack(ctx, errFails, items...) })
	case n == 7:
		return c.begin(Fail, items...), errFails
	default:
		return c.settle(items, Return, func() error { return c.Queue.Nack(ctx, nil, items...) })
	}
}

// settle settles items by a call. If nothing comes of it they go back by the end of the handler,
// as it fails.
func (c *Client) settle(items []kvqueue.Item, how string, call func() error) ([]int64, error) {
	ids := c.begin(how, items...)
	err := call()
	switch {
	case err == nil && (how != Fail || !c.delays):
		c.ended(ids...)
		return nil, nil
	case err == nil: // they are held for a while
		return nil, nil
	case !errors.Is(err, kvqueue.ErrUnknown) && len(items) == 1: // of several the error is that of one
		c.void(ids...)
	}
	c.begin(Fail, items...)
	return nil, fmt.Errorf("%s: %w", how, err)
}

// Revive puts dead letters back until ctx ends. Only one client of a history does.
func (c *Client) Revive(ctx context.Context) {
	for ctx.Err() == nil {
		c.pause(ctx, 1)
		letters, err := c.Queue.Dead(ctx, kvqueue.Key{}, 3)
		if err != nil {
			continue
		}
		for _, l := range letters {
			ids := c.begin(Requeue, l.Item)
			n, err := c.Queue.Requeue(ctx, l.Key)
			switch {
			case n == 1:
				c.ended(ids...)
			case !errors.Is(err, kvqueue.ErrUnknown):
				c.void(ids...)
			}
		}
	}
}

// Empty reports whether nothing is in the queue, at one revision, and notes that.
func (c *Client) Empty(ctx context.Context, kv kvqueue.KV) (bool, error) {
	id := c.s.Tick()
	payloads, _, err := kv.Read(ctx, kvqueue.Range{Begin: []byte("kvq/q/d/"), End: []byte("kvq/q/d0"), Limit: 1, KeysOnly: true})
	if err != nil || len(payloads[0].Pairs) > 0 {
		return false, err
	}
	c.s.Note(Entry{Kind: Began, ID: id, What: Empty})
	c.ended(id)
	return true, nil
}
