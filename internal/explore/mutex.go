package explore

import (
	"math"
	"sync"
	"sync/atomic"
)

// A Mutex is a sync.Mutex of which the driver knows the holder. Its zero value
// is unlocked.
type Mutex struct {
	real sync.Mutex // locked exactly while somebody holds it, so that goroutines outside the bubble are kept out, too

	// The code below is the model. It counts only while world explores: a lock
	// that outlives a schedule begins the next one afresh. Guarded by world.mu.
	world  *World
	holder *gor
}

// Lock locks m. It is a point.
func (m *Mutex) Lock() {
	w, g := here()
	if w != nil {
		w.stop(g, op{kind: opLock, mutex: m})
	}
	m.real.Lock() // free but for a moment: the driver has let us go on
}

// TryLock locks m if that is free and reports whether it has. It is a point.
func (m *Mutex) TryLock() bool {
	w, g := here()
	if w == nil {
		return m.real.TryLock()
	}
	w.stop(g, op{kind: opTryLock, object: m})
	if !m.real.TryLock() {
		return false
	}
	w.mu.Lock()
	m.holdLocked(w, g)
	w.mu.Unlock()
	return true
}

// Unlock unlocks m. It is no point: what can follow it is seen at the next one.
func (m *Mutex) Unlock() {
	if w, _ := here(); w != nil && !w.release(m) {
		return
	}
	m.real.Unlock()
}

// freeLocked reports whether nobody in w holds m.
func (m *Mutex) freeLocked(w *World) bool { return m.world != w || m.holder == nil }

// holdLocked makes g the holder of m.
func (m *Mutex) holdLocked(w *World, g *gor) {
	m.world, m.holder = w, g
	w.held[m] = struct{}{}
}

// release takes m from its holder. It reports false if the schedule is being
// torn down, where nobody holds anything.
func (w *World) release(m *Mutex) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.killing {
		return false
	}
	if m.world == w {
		m.holder = nil
		delete(w.held, m)
	}
	return true
}

// A Cond is a sync.Cond whose waiters the driver knows. L must be a [*Mutex].
// Signal wakes the one that has waited longest.
type Cond struct {
	L sync.Locker

	plain atomic.Pointer[sync.Cond] // made when a goroutine outside waits first

	world   *World // as in Mutex
	waiters []*gor // guarded by world.mu
}

// Wait unlocks c.L, waits for Signal or Broadcast, and locks c.L again.
func (c *Cond) Wait() {
	w, g := here()
	if w == nil {
		c.plain.CompareAndSwap(nil, sync.NewCond(c.L))
		c.plain.Load().Wait()
		return
	}
	m := c.L.(*Mutex)
	w.mu.Lock()
	if c.world != w {
		c.world, c.waiters = w, nil
	}
	c.waiters = append(c.waiters, g)
	w.mu.Unlock()
	m.Unlock()
	w.stop(g, op{kind: opWait, mutex: m, object: c})
	m.real.Lock()
}

// Signal wakes one waiter, if there is any.
func (c *Cond) Signal() {
	c.wake(1)
	if p := c.plain.Load(); p != nil {
		p.Signal()
	}
}

// Broadcast wakes all waiters.
func (c *Cond) Broadcast() {
	c.wake(math.MaxInt)
	if p := c.plain.Load(); p != nil {
		p.Broadcast()
	}
}

// wake lets up to n waiters ask for the lock.
func (c *Cond) wake(n int) {
	w, _ := here()
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.world != w {
		return
	}
	n = min(n, len(c.waiters))
	for _, g := range c.waiters[:n] {
		g.op.kind = opRelock
	}
	c.waiters = c.waiters[n:]
}

// A Pool is a sync.Pool that is empty at the start of every schedule and
// returns what was put last.
type Pool struct {
	New func() any

	plain sync.Pool
}

// Get returns something that was put, or what New returns.
func (p *Pool) Get() any {
	w, _ := here()
	if w == nil {
		if x := p.plain.Get(); x != nil || p.New == nil {
			return x
		}
		return p.New()
	}
	w.mu.Lock()
	items := w.pools[p]
	if n := len(items); n > 0 {
		w.pools[p] = items[:n-1]
		w.mu.Unlock()
		return items[n-1]
	}
	w.mu.Unlock()
	if p.New == nil {
		return nil
	}
	return p.New()
}

// Put keeps x for a later Get.
func (p *Pool) Put(x any) {
	w, _ := here()
	if w == nil {
		p.plain.Put(x)
		return
	}
	w.mu.Lock()
	w.pools[p] = append(w.pools[p], x)
	w.mu.Unlock()
}
