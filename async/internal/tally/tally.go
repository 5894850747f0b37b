// Package tally decides what is told to whom when work in a scope goes wrong.
//
// It is a pure core: facts in, decisions out. It takes no lock, starts no
// goroutine, reads no clock, and calls no method of an error. Its user holds
// the scope's lock around every call and acts on the answers after unlocking.
// A success never reaches it, so a scope in which all goes well has none.
//
// A fact is classified before it comes here: whether an error is an echo, that
// is, says no more than that its task was told to stop, takes calls of users'
// methods, which nobody may make under a lock.
//
// The shape, events in and actions out, is that of etcd's raft.
package tally

import (
	"cmp"
	"reflect"
	"slices"
)

// Max is how many errors a scope lists. It keeps the number of the rest.
const Max = 32

// A Tally is what has gone wrong in one scope. The zero value says that nothing
// has. A nil Tally may be asked for its Sum.
type Tally struct {
	// Bare returns what is compared of an error. Two errors of which it returns the
	// same are one failure: that of package async which says whose another is, and
	// the other. It must call no method of a user's. Nil: the error itself.
	Bare func(error) error

	errs    []error // failures in the order in which they came; at most Max, each once
	hooks   []error // of hooks, observers and discards; at most Max
	panicky error   // the first panic; it is the one that is raised
	dropped int     // how many failures and errors of hooks were not listed
	decided error   // the first failure for which the scope was to be cancelled
	goexit  bool    // something called runtime.Goexit

	texts        []error // what was said beside cancellations; at most Max, each once
	textsDropped int     // how many more there were
	cutOff       bool    // the end of the scope has cut off work

	// unfinished: something only repeated that the scope was cancelled, or was not
	// done because of that.
	unfinished bool
	told       bool // why the scope was cancelled; see Forget

	open    list // failures of futures and values that nobody was given yet
	failing int  // errors in open, panics and values not counted; at most Max
	counted int  // open errors that found no place in the list and are only counted
}

// Unclaimed returns how many failures of futures nobody has been given yet. A nil Tally has none.
func (t *Tally) Unclaimed() int {
	if t == nil {
		return 0
	}
	return t.failing + t.counted
}

// Record decides about a fact that nobody but the scope is told of: how a Go task,
// an item, or the body itself has ended; what went wrong in a hook.
func (t *Tally) Record(f *Fact) Decision {
	switch {
	case f.Quiet && !f.mustRaise():
		if f.Class == Echo {
			t.addTexts(f)
		}
		return Ignored
	case f.Class == Echo:
		t.unfinished = true
		t.addTexts(f)
	case f.Class == Hook:
		t.addHook(cmp.Or(f.As, f.Err))
	case f.GoesOn:
		t.fail(f, nil)
	default:
		t.fail(f, nil)
		if t.decided == nil {
			t.decided = f.Err
		}
		return Fails
	}
	return Recorded
}

// Future decides about the failure of a future. If the decision is Open, x
// stands for it from now on; see Claim.
func (t *Tally) Future(f *Fact, future Future, x *Entry) Decision {
	switch {
	case future.Abandoned:
		if future.Awaited {
			t.fail(f, nil)
		}
		return Given
	case f.Class == Echo:
		t.unfinished = t.unfinished || !f.Quiet
		if !future.Awaited && !future.Told { // else somebody has it
			t.addTexts(f)
		}
		return Given
	case (future.Told || f.Quiet) && !f.mustRaise():
		return Given
	}
	return t.offer(f, future, x)
}

// fail lists a failure, a panic or Goexit, which is told as tell says; nil: as it is.
// tell is not asked about what is not listed.
func (t *Tally) fail(f *Fact, tell func(error) error) {
	if f.Class == Goexit {
		t.goexit = true
	}
	if f.Class == Panic {
		t.addPanic(f.Err)
	} else if f.Errs == nil {
		t.add(cmp.Or(f.As, f.Err), tell)
	}
	for _, err := range f.Errs {
		if !t.same(err, t.panicky) {
			t.add(err, tell)
		}
	}
	t.dropped += f.Dropped
	t.addTexts(f)
}

// addTexts lists what was said beside a cancellation, each once.
func (t *Tally) addTexts(f *Fact) {
	for _, text := range f.Texts {
		switch {
		case t.contains(t.texts, text):
		case len(t.texts) < Max:
			t.texts = append(t.texts, text)
		default:
			t.textsDropped++
		}
	}
	t.textsDropped += f.TextsDropped
	t.cutOff = t.cutOff || f.CutOff
}

// addPanic records a panic. The first is the one that is raised.
func (t *Tally) addPanic(p error) {
	switch {
	case t.panicky == nil:
		t.panicky = p
		// It may have been given to somebody who returned it.
		t.errs = slices.DeleteFunc(t.errs, func(e error) bool { return t.same(e, p) })
	case !t.same(t.panicky, p):
		t.add(p, nil)
	}
}

// add lists an error once, however many repeat it.
func (t *Tally) add(err error, tell func(error) error) {
	switch {
	case t.contains(t.errs, err):
	case len(t.errs) == Max:
		t.dropped++
	case tell != nil:
		t.errs = append(t.errs, tell(err))
	default:
		t.errs = append(t.errs, err)
	}
}

// same reports whether a and b are one failure.
func (t *Tally) same(a, b error) bool {
	if t.Bare != nil {
		a, b = t.Bare(a), t.Bare(b)
	}
	return Same(a, b)
}

func (t *Tally) contains(errs []error, err error) bool {
	return slices.ContainsFunc(errs, func(e error) bool { return t.same(e, err) })
}

// addHook lists an error of a hook, once.
func (t *Tally) addHook(err error) {
	switch {
	case t.contains(t.hooks, err):
	case len(t.hooks) < Max:
		t.hooks = append(t.hooks, err)
	default:
		t.dropped++
	}
}

// has reports whether err is one of the failures so far.
func (t *Tally) has(err error) bool {
	return t.panicky != nil && t.same(t.panicky, err) || t.contains(t.errs, err)
}

// failed reports whether anything has failed so far.
func (t *Tally) failed() bool {
	return t.panicky != nil || t.goexit || len(t.errs)+len(t.hooks)+t.dropped > 0
}

// FromInside reports whether cause is a failure of the scope's own: one of those that
// are listed, or the first for which it was to be cancelled.
func (t *Tally) FromInside(cause error) bool {
	return t != nil && (t.same(t.decided, cause) || t.has(cause))
}

// FirstPanic returns the panic that is to be raised, nil if there is none.
func (t *Tally) FirstPanic() error {
	if t == nil {
		return nil
	}
	return t.panicky
}

// Same reports whether two errors, or two values of panics, are the same one. It compares by identity
// and calls no method of theirs. Values that cannot be compared, such as a
// slice in a struct, are the same if they share what they hold: the contents
// are not read, because somebody may be writing them.
func Same(a, b any) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	t := reflect.TypeOf(a)
	if t != reflect.TypeOf(b) {
		return false
	}
	if t.Kind() == reflect.Pointer {
		return a == b // most often
	}
	return identical(reflect.ValueOf(a), reflect.ValueOf(b))
}

// identical is == for values of one type, extended to those that have none.
func identical(a, b reflect.Value) bool {
	if a.Comparable() && b.Comparable() {
		return a.Equal(b)
	}
	switch a.Kind() {
	case reflect.Slice:
		return a.Len() == b.Len() && a.UnsafePointer() == b.UnsafePointer()
	case reflect.Map, reflect.Func:
		return a.UnsafePointer() == b.UnsafePointer()
	case reflect.Interface:
		a, b = a.Elem(), b.Elem()
		return a.IsValid() && b.IsValid() && a.Type() == b.Type() && identical(a, b)
	case reflect.Struct:
		for i := range a.NumField() {
			if !identical(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Array:
		for i := range a.Len() {
			if !identical(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	default:
		return false
	}
}
