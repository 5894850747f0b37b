package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/bench/internal/measure"
)

// reasons say why a budget is missed and what it would cost to keep it, where that is known: what a profile and counts of
// instructions have shown. They carry no figures that change from run to run: those are the table's.
var reasons = map[string]string{
	"B1": "Half of the time is the runtime's, as for B2, and a tenth is the clock, which Await reads for its limit. A task without a scope around it is a member of the root, and " +
		"brings what it would find in a scope: two allocations more. To be faster it would have to be no member of anything, and Shutdown and a dump would not find it.",
	"B2": "Half of the time is the runtime's, as by hand: a goroutine is started, parks and is woken. The rest has no counterpart by hand: the task enters its scope and leaves it under a lock, its outcome is settled in the order " +
		"children, hooks, waiters, and the wait looks whether it could ever end. By hand a value goes through a channel, nobody joins the goroutine, and its panic ends the process. " +
		"To be as fast a future would have to settle before what it has started has ended.",
	"B3": "To start a goroutine is the largest part, here and with errgroup. Beside it each task enters its scope under a lock, where errgroup adds to a counter, and has a frame that tells a panic and Goexit from a return. " +
		"Without the list of children there would be nothing to cancel, to name as a straggler or to show in a dump; a counter alone would be as fast as errgroup.",
	"B4": "As B3, and each task has a future that keeps its outcome, where errgroup's function writes to a slice that the caller has made: twice the bytes a task. AwaitAll itself is a small part. " +
		"ForEach and ForkJoin do this work without a task for each item, and are what it should be done with.",
	"B5": "A result has an index, a value and an error, and most of the time goes into writing those: the row beside results of the same size says what is left. " +
		"With the error alone for items that fail it would be faster, and a result could not be passed on by itself.",
	"B5b": "Each item is handed from the sequence to a worker and its result back, since a sequence is pulled one by one and is not read ahead by more than the limit. " +
		"To hand out several at a time would be faster, and an item that waits for the next would wait for ever. ForkJoin, which has a slice, does hand out several.",
	"B6": "A quarter of the time is the end of the contenders: the choice is made, losers are cancelled, and what they have started is joined. A sixth is the standard contexts that contenders make when they are asked for Done, and the Scope around the race. " +
		"The race by hand joins its losers and knows nothing of what they have started; without the scope of a contender that would outlive the race.",
	"B8": "The one allocation is the handle's node: to make it and to collect it is half of the time, in instructions more than two fifths without the collection. It is not used again, so that a handle never tells of another task; " +
		"with nodes that are used again a handle would need a number beside the pointer, and every look at it a comparison under the lock. The rest is many small steps, none of which has more than a tenth. The budget is in nanoseconds of a quiet machine. " +
		"A delayed task reads the clock and may move a timer; without that a timer would have to be armed while nothing is due.",
	"B9": "A fifth of the time is three looks at the clock, for the times in Stats; the workqueue has none without its metrics. A tenth is that the scope of Take is told of the queue and forgets it again for each job that is taken and settled alone: " +
		"its end settles what is left, and a long scope keeps nothing of a queue of which it holds nothing. The workqueue has no owner, and a job whose worker dies stays in progress for ever. To keep the budget Stats would have to lose its times, " +
		"and a scope would have to keep the last queue that it has taken from. Consume and jobs that are taken several at a time pay both once for all.",
	"B10": "A goroutine begins with a small stack, and the library's frames between its start and the handler, and those of Await, make it grow. They are what tells of panics and Goexit, joins children and " +
		"looks for cycles of waits.",
	"B11": "A task whose ctx is asked for Done makes an inner scope then, since what is derived from that ctx may start tasks in it, and a standard context, where by hand there is the context alone. " +
		"The scope is most of it; what few scopes have stands apart already. To make it smaller its lists would have to, which a scope that starts a task allocates in addition.",
	"B13": "A nested Start and Await is a goroutine that waits for the next, and of ten thousand each has a stack and a place in the caches of the processor, which ten do not need: the rows by hand, which do no more than that, grow, too. " +
		"The cost of a level does not depend on the levels around it: what B14 measures keeps to its bound.",
	"T1":  "See [the costs of taskqueue](taskqueue.md#costs).",
	"T2":  "See [the costs of taskqueue](taskqueue.md#costs).",
	"T8":  "See [the costs of taskqueue](taskqueue.md#costs).",
	"T9":  "See [the costs of taskqueue](taskqueue.md#costs).",
	"T10": "See [the costs of taskqueue](taskqueue.md#costs).",
	"L1":  "See [the costs of locks](locks.md#costs).",
	"L3": "Two transactions. Half of the time SQLite carries out their statements, a quarter it commits, and within both a quarter is system calls: locks of the file, and what is appended to its log. About an eighth is neither SQLite's nor its driver's. " +
		"To keep the budget on a slower machine it would take SQLite in C, and with that a C compiler for whoever builds a program.",
	"L4": "See [the costs of locks](locks.md#costs).",
	"L5": "See [the costs of locks](locks.md#costs).",
	"L7": "On SQLite a statement renews a hundred leases, and most of the time SQLite carries those out: it finds each row by its key, writes it, and returns when it ends. On Redis it is the server's time: see [the costs of locks](locks.md#costs). " +
		"The servers of PostgreSQL and MariaDB were not profiled. To be faster a process would have to have one lease for all that it holds, as on etcd, and a lease could not be revoked by itself without another write.",
	"K1": "See [the figures of kvqueue](kvqueue.md#figures).",
	"K4": "See [the figures of kvqueue](kvqueue.md#figures).",
	"K7": "Measured once. The items that a member had been assigned lie until the session of the dead member has ended, and if it is the one that assigns, nothing is assigned until then; in a race for the head the others go on. " +
		"With a shorter TTL it would be faster, and a process that is suspended for a moment would lose what it works on.",
	"K8": "A transaction is on the disk before it is acknowledged: with one caller that wait is most of its time. Processes wait for the disk beside each other, and have one writer at a time: four of two consumers have more transactions than one of eight, " +
		"and each of them looks at what the others have written. To share transactions one process would have to write for the others, and these would be hurt when it ends.",
}

// missed is the section about budgets that are missed, or whose median misses the budget where there is no verdict.
func (all *results) missed() string {
	var ids []string
	over := map[string]bool{} // with a verdict
	for _, r := range all.rows {
		if r.Verdict() == measure.Over || r.MedianOver() {
			over[r.ID] = over[r.ID] || r.Verdict() == measure.Over
			ids = append(ids, r.ID)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	slices.SortStableFunc(ids, func(a, b string) int { return number(a) - number(b) })
	var b strings.Builder
	b.WriteString("## Where a budget is missed\n\nWhere there is no verdict the median alone is over.\n\n")
	for _, id := range slices.Compact(ids) {
		reason := reasons[id]
		if reason == "" {
			reason = "Nobody has said why yet."
		}
		if id[0] == 'B' {
			reason += fmt.Sprintf(" A profile: `make budgets ONLY=%s PROFILE=cpu.out`, then `go tool pprof -top out/bin/budgets cpu.out`.", id)
		}
		verdict := "over"
		if !over[id] {
			verdict = "no verdict"
		}
		fmt.Fprintf(&b, "- **%s** (%s): %s\n", id, verdict, reason)
	}
	return b.String() + "\n"
}
