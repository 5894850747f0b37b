package redisstore

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ambit-go/ambit/locks"
)

// An answer is what a script has returned, or a part of it: a string, a number, a list.
type answer struct{ v any }

// at returns a part of a list, nothing if there is none.
func (a answer) at(i int) answer {
	if list, ok := a.v.([]any); ok && i < len(list) {
		return answer{list[i]}
	}
	return answer{}
}

func (a answer) len() int {
	list, _ := a.v.([]any)
	return len(list)
}

func (a answer) text() string {
	s, _ := a.v.(string)
	return s
}

func (a answer) number() int64 {
	if n, ok := a.v.(int64); ok {
		return n
	}
	n, _ := strconv.ParseInt(a.text(), 10, 64)
	return n
}

func (a answer) time() time.Time { return stamp(a.number()) }

// stamp is a time of the server; that of 0 is zero.
func stamp(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us)
}

func (a answer) duration() time.Duration { return time.Duration(a.number()) * time.Microsecond }

// grant reads a lease: ten numbers, then its ID, version and owner, whose lengths are the
// first two and what is left.
func (a answer) grant() (g locks.Grant) {
	head, rest, _ := strings.Cut(a.text(), "|")
	var n [10]int64
	for i := range n {
		var number string
		number, head, _ = strings.Cut(head, " ")
		n[i], _ = strconv.ParseInt(number, 10, 64)
	}
	id, version := int(n[0]), int(n[0]+n[1])
	if id < 0 || version < id || version > len(rest) {
		return g // the server has been told something else
	}
	return locks.Grant{
		ID: rest[:id], Version: rest[id:version], Owner: rest[version:], Fence: n[2], Slot: int(n[3]), Permits: int(n[4]),
		Shared: n[5] == 1, Revoked: n[6] == 1, Lease: time.Duration(n[7]) * time.Microsecond, Acquired: stamp(n[8]), Expires: stamp(n[9]),
	}
}

// answer reads what became of a request.
func (a answer) answer(q *locks.Request) locks.Answer {
	switch a.at(0).text() {
	case "granted":
		return locks.Answer{Granted: true, Grant: a.at(1).grant()}
	case "waits":
		return locks.Answer{Place: int(a.at(1).number()), Holder: a.at(2).text()}
	}
	kind, size := locks.Kind(a.at(2).number()), a.at(3).number()
	var err error
	switch a.at(1).text() {
	case "none":
		err = locks.ErrNotFound
	case "kind":
		err = locks.Conflict("it is a %s, not a %s", kind, q.Kind)
	case "size":
		err = locks.Conflict("it has size %d, not %d", size, q.Size)
	default:
		err = locks.Conflict("%d permits are asked for, and it has %d in all", max(q.Permits, 1), size)
	}
	return locks.Answer{Err: err}
}

// renewed reads what became of a renewal.
func (a answer) renewed() locks.RenewResult {
	switch a.text() {
	case "gone":
		return locks.RenewResult{Verdict: locks.NotYours}
	case "revoked":
		return locks.RenewResult{Verdict: locks.Revoked}
	}
	return locks.RenewResult{Verdict: locks.Extended, Grant: a.grant()}
}

// record reads what the function shown of the scripts returns.
func (a answer) record(name locks.Name) locks.Record {
	f := a.at(5)
	r := locks.Record{
		Name: name, Kind: locks.Kind(a.at(0).number()), Size: int(a.at(1).number()), Fence: a.at(2).number(), Busy: int(a.at(3).number()),
		Waiters: int(a.at(4).number()), Lease: f.at(0).duration(), Fair: f.at(1).text() == "1", DeleteOnRelease: f.at(2).text() == "1",
		LockDelay: f.at(3).duration(), Version: f.at(4).text(), CreatedBy: f.at(5).text(), CreatedAt: f.at(6).time(),
		UpdatedBy: f.at(7).text(), UpdatedAt: f.at(8).time(),
	}
	if data, ok := f.at(9).v.(string); ok {
		r.Data = &data
	}
	for i := range a.at(6).len() {
		r.Holders = append(r.Holders, a.at(6).at(i).grant())
	}
	slices.SortFunc(r.Holders, func(a, b locks.Grant) int { return cmp.Compare(a.Fence, b.Fence) })
	if r.Kind == locks.Mutex && len(r.Holders) == 1 {
		r.Version = r.Holders[0].Version
	}
	return r
}
