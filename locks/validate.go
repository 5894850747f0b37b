package locks

import (
	"fmt"
	"time"
)

const (
	maxTenant  = 255
	maxKey     = 1024
	maxOwner   = 255
	maxVersion = 255
	maxData    = 64 << 10
	maxSize    = 1000
	maxKeys    = 1000 // of WithAll
	maxLease   = 24 * time.Hour
)

func checkText(what, s string, most int) error {
	if len(s) > most {
		return &ValidationError{what, fmt.Sprintf("it has %d bytes, and %d are the most", len(s), most)}
	}
	return nil
}

// checkKey says what is wrong with a key. The key itself is not shown: it may be long.
func checkKey(key string) error {
	if key == "" {
		return &ValidationError{"key", "it is empty"}
	}
	return checkText("key", key, maxKey)
}

func checkData(s string) error { return checkText("Data", s, maxData) }

func checkVersion(s string) error {
	if s == "" {
		return &ValidationError{"version", "it is empty: say which lease is meant"}
	}
	return checkText("version", s, maxVersion)
}

func checkSize(size int) error {
	if size < 1 || size > maxSize {
		return &ValidationError{"size", fmt.Sprintf("%d is not from 1 to %d", size, maxSize)}
	}
	return nil
}

func checkPermits(size, n int) error {
	if err := checkSize(size); err != nil {
		return err
	}
	if n < 1 || n > size {
		return &ValidationError{"permits", fmt.Sprintf("%d is not from 1 to %d, which is the size", n, size)}
	}
	return nil
}

// checkLease is for a lease in the store that t tells of.
func checkLease(d time.Duration, t Traits) error {
	if d < t.MinLease || d > maxLease || d < time.Millisecond {
		return &ValidationError{"Lease", fmt.Sprintf("%v is not from %v to %v, which %s can do", d, max(t.MinLease, time.Millisecond), maxLease, t.Name)}
	}
	return nil
}

// call returns what the options say, checked.
func (m *Manager) call(key string, options []LockOption, more ...LockOption) (*call, error) {
	c := &call{kind: Mutex, permits: 1, lease: m.set.lease, wait: forever}
	if err := checkKey(key); err != nil {
		return nil, err
	}
	for _, list := range [2][]LockOption{options, more} {
		for _, o := range list {
			if o == nil {
				return nil, &ValidationError{"option", "it is nil: leave it out"}
			}
			if err := o.applyLock(c); err != nil {
				return nil, err
			}
		}
	}
	if err := checkLease(c.lease, m.traits); err != nil {
		return nil, err
	}
	return c, m.checkKind(c)
}

func (m *Manager) checkKind(c *call) error {
	switch {
	case c.resize && c.strict:
		return &ValidationError{"Resize", "it gives a semaphore the size that is named, and Strict refuses one of another size: use one of the two"}
	case c.resize && c.size == 0:
		return &ValidationError{"Resize", fmt.Sprintf("no size is named: a %s has none, nor has AsRecorded", c.kind)}
	case m.traits.Simple && c.kind == ReadWrite:
		return &ValidationError{"kind", fmt.Sprintf("%s has no read-write locks", m.traits.Name)}
	case m.traits.Simple && c.permits > 1:
		return &ValidationError{"permits", fmt.Sprintf("%s grants one permit at a time", m.traits.Name)}
	}
	return nil
}
