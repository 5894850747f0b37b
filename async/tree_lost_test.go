package async_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/ambit-go/ambit/async"
)

// check looks at all nodes when the tree has ended.
func (r *treeRun) check() {
	for _, n := range r.nodes {
		if n.hooks > max(n.runs, 1) {
			r.fault("node %d: %d abort hooks", n.id, n.hooks)
		}
		given := 0
		if n.kept {
			given = 1
		}
		if n.hooked && n.values != given+n.discarded {
			r.fault("node %d: of %d values %d were given and %d discarded", n.id, n.values, given, n.discarded)
		}
	}
	r.lost()
}

// mustBeTold reports whether the error of n has to be given to somebody: not if it
// has none, if another run may have followed, if somebody was told of something else
// instead, if it lost a race, or if it stands in a daemon, which may have been stopped.
func (n *treeNode) mustBeTold() bool {
	return n.err != nil &&
		!n.is(func(n *treeNode) bool { return n.again || n.loser }) &&
		(n.loud || !n.is(func(n *treeNode) bool { return n.told || n.daemon }))
}

// lost checks that every error was given to somebody who is around its node, but for
// those of which a list that is too long gives only the number.
//
// Which list has left an error out is known: that of the nearest node around it of
// which somebody was given a list that is too long. If a list finds no place in
// another, it counts there as one.
func (r *treeRun) lost() {
	missing := map[*treeNode][]*treeNode{}
	for _, n := range r.nodes {
		if !n.mustBeTold() || r.wasGiven(n) {
			continue
		}
		at := n
		for at != nil && r.leftOut(at) == 0 {
			at = at.parent
		}
		missing[at] = append(missing[at], n)
	}
	for at, nodes := range missing {
		if count, limit := r.leastLeftOut(at, at, nodes), r.leftOut(at); count > limit {
			r.fault("errors of nodes %v were lost: lists have left out %d, and these are at least %d", ids(nodes), limit, count)
		}
	}
}

func ids(nodes []*treeNode) (all []int) {
	for _, n := range nodes {
		all = append(all, n.id)
	}
	return all
}

// wasGiven reports whether somebody was given the error of n.
func (r *treeRun) wasGiven(n *treeNode) bool {
	return slices.ContainsFunc(r.sinks, func(s treeSink) bool { return errors.Is(everythingIn(s.err), n.err) })
}

// wasGivenAs reports whether somebody was given the error of n in the outcome of at.
func (r *treeRun) wasGivenAs(at, n *treeNode) bool {
	return slices.ContainsFunc(r.sinks, func(s treeSink) bool {
		return s.n == at && errors.Is(everythingIn(s.err), n.err)
	})
}

// leastLeftOut returns how many errors of n a list of at must have left out at least for
// missing to be missing: all that is below one node may have been one list, if that list
// has nothing of it.
func (r *treeRun) leastLeftOut(at, n *treeNode, missing []*treeNode) (least int) {
	if slices.Contains(missing, n) {
		least++
	}
	for _, child := range r.nodes {
		if child.parent != n {
			continue
		}
		below := func(m *treeNode) bool { return m.is(func(n *treeNode) bool { return n == child }) }
		kept := slices.ContainsFunc(r.nodes, func(m *treeNode) bool {
			return below(m) && m.mustBeTold() && r.wasGivenAs(at, m)
		})
		switch {
		case !slices.ContainsFunc(missing, below):
		case kept:
			least += r.leastLeftOut(at, child, missing)
		default:
			least++
		}
	}
	return least
}

// leftOut returns how many errors the lists have left out that were given as the
// outcome of n.
func (r *treeRun) leftOut(n *treeNode) (most int) {
	for _, s := range r.sinks {
		if s.n == n {
			most = max(most, leftOut(s.err, map[error]bool{}))
		}
	}
	return most
}

// moreBeside is the line of a panic that says how many errors Also has left out.
var moreBeside = regexp.MustCompile(`(?m)^\tand (\d+) more$`)

// leftOut returns how many errors the lists in err have left out.
func leftOut(err error, seen map[error]bool) (count int) {
	var inside []error
	switch e := err.(type) {
	case *async.ScopeError:
		if seen[e] {
			return 0
		}
		seen[e] = true
		count, inside = e.Dropped, e.Unwrap()
	case *async.PanicError:
		if seen[e] {
			return 0
		}
		seen[e] = true
		if more := moreBeside.FindStringSubmatch(fmt.Sprintf("%+v", e)); more != nil {
			count, _ = strconv.Atoi(more[1])
		}
		inside = append(append(inside, e.Also...), e.Unwrap())
	case interface{ Unwrap() error }:
		inside = []error{e.Unwrap()}
	case interface{ Unwrap() []error }:
		inside = e.Unwrap()
	}
	for _, err := range inside {
		count += leftOut(err, seen)
	}
	return count
}
