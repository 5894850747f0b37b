package async

import (
	"runtime"
	"time"
)

// A patience says whether a goroutine that has nothing to do yields before it
// parks. Where items are tiny there is mostly something when it comes back, and
// to be woken costs more than the item. Where they are not, or where others
// keep the processors busy, it parks at once for a while.
type patience struct {
	tries  uint8  // yields in this round
	hits   uint8  // how many of them helped
	parked uint16 // how many times more it parks at once
}

const (
	patienceRound = 32                   // yields in a round; the last is timed
	patienceHits  = 8                    // so many must help
	patienceLimit = 3 * time.Microsecond // and the timed one takes no longer
	patienceOff   = 1000                 // else it parks at once so many times
)

func (p *patience) willing() bool {
	if p.parked > 0 {
		p.parked--
		return false
	}
	return true
}

func (p *patience) yield() {
	if p.tries++; p.tries < patienceRound {
		runtime.Gosched()
		return
	}
	start := clock()
	runtime.Gosched()
	if p.hits < patienceHits || clock()-start > patienceLimit {
		p.parked = patienceOff
	}
	p.tries, p.hits = 0, 0
}

func (p *patience) helped(yes bool) {
	if yes {
		p.hits++
	}
}
