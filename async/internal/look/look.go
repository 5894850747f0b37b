// Package look finds the stacks of many objects in one look at all goroutines. Such a look
// stops the world, so those who ask at about the same time share one.
package look

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

// lookAge is for how long a look is good enough for a later question, if it took
// no time. A look that took long is good for longer: the world is stopped for a
// twentieth of the time at most.
const (
	lookAge   = 100 * time.Millisecond
	lookShare = 20
)

// Shown is where a traceback prints the address of an object: as argument Arg of a
// function, the receiver being argument 0.
type Shown struct {
	By  string // the function, up to the parenthesis: "tree.(*Task).Main("
	Arg int
}

// A Look is what one look at all goroutines has shown.
type Look struct {
	number int64 // of the looks of this process
	at     time.Duration
	took   time.Duration
	all    []string          // the stacks
	stacks map[string]string // by the address of the object, as a traceback prints it
}

// looks is the last look. Its lock is held while the world is stopped, and not
// while anybody waits for something else.
var looks struct {
	begun atomic.Int64 // how many there were
	mu    sync.Mutex   // guards what follows
	size  int          // of the last one, in bytes
	last  weak.Pointer[Look]
}

// For returns a look that shows objects, pointers of one type that shown shows, as far as
// they are on the stack of a goroutine.
//
// A look that began after the question shows everything there is to be seen. One that is a
// little older will do if it shows all objects: then only what one does at the moment may be
// out of date. The proof that it is not the stack of an older object at the same address follows from
// the weak pointer: memory is given out again only after a collection, which takes the look,
// too.
func For[T any](objects []*T, shown ...Shown) *Look {
	asked := looks.begun.Load()
	looks.mu.Lock()
	defer looks.mu.Unlock()
	l := looks.last.Value()
	if l == nil || l.number <= asked && !(l.fresh() && shows(l, objects)) {
		l = take(shown)
		looks.last = weak.Make(l)
	}
	return l
}

// Count returns how many looks there were.
func Count() int64 { return looks.begun.Load() }

func shows[T any](l *Look, objects []*T) bool {
	for _, o := range objects {
		if l.StackOf(o) == "" {
			return false
		}
	}
	return true
}

// take stops the world and looks at all goroutines. looks.mu is held.
func take(shown []Shown) *Look {
	l := &Look{number: looks.begun.Add(1), at: clock(), stacks: make(map[string]string)}
	l.all = allStacks()
	for _, stack := range l.all {
		for _, by := range shown {
			l.keep(stack, by.By, by.Arg)
		}
	}
	l.took = clock() - l.at
	return l
}

// keep remembers stack as that of the objects whose address is argument n of a function in
// it.
func (l *Look) keep(stack, function string, n int) {
	for _, rest, found := strings.Cut(stack, function); found; _, rest, found = strings.Cut(rest, function) {
		args, _, _ := strings.Cut(rest, ")")
		list := strings.SplitN(args, ", ", n+2)
		if len(list) <= n {
			continue
		}
		l.stacks[list[n]] = stack // one with a question mark is out of date, and no object's
	}
}

// fresh reports whether l is good enough for a question now. In a synctest bubble
// it is asked on another clock than outside; that is years behind.
func (l *Look) fresh() bool {
	age := clock() - l.at
	return age >= 0 && age <= max(lookAge, lookShare*l.took)
}

// StackOf returns the stack that shows object, which is a pointer; "" if there was none.
func (l *Look) StackOf(object any) string { return l.stacks[fmt.Sprintf("%p", object)] }

// With returns the stack that has frame in it, "" if there was none.
func (l *Look) With(frame string) string {
	for _, stack := range l.all {
		if frame != "" && strings.Contains(stack, frame) {
			return stack
		}
	}
	return ""
}

// allStacks returns the stack of every goroutine. looks.mu is held.
func allStacks() []string {
	const most = 16 << 20
	for size := max(64<<10, looks.size+looks.size/4); ; size *= 2 {
		buf := make([]byte, min(size, most))
		n := runtime.Stack(buf, true)
		if looks.size = n; n < len(buf) || size >= most {
			return strings.Split(string(buf[:n]), "\n\n")
		}
	}
}

// epoch is when our clock began.
var epoch = time.Now()

func clock() time.Duration { return time.Since(epoch) }
