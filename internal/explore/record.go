package explore

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// replayed says all about one schedule.
type replayed struct {
	program    uint64 // the seed of World.Rand
	level      Level
	schedule   uint64 // the seed of the strategy, unless fixed
	steps      int    // what the strategy expected
	fixed      bool   // the schedule is given by its deviations
	deviations []deviation
}

// String is what a failure prints and EXPLORE_REPLAY takes.
func (r replayed) String() string {
	if !r.fixed {
		return fmt.Sprintf("%d/%v/seed/%d/%d", r.program, r.level, r.schedule, r.steps)
	}
	all := make([]string, len(r.deviations))
	for i, d := range r.deviations {
		all[i] = d.String()
	}
	return fmt.Sprintf("%d/%v/%s", r.program, r.level, strings.Join(all, ","))
}

func parseReplay(s string) (r replayed, err error) {
	parts := strings.Split(s, "/")
	if len(parts) < 3 {
		return r, fmt.Errorf("%q: want program/level/deviations", s)
	}
	if r.program, err = strconv.ParseUint(parts[0], 10, 64); err != nil {
		return r, err
	}
	for r.level = Hand; r.level.String() != parts[1]; r.level++ {
		if r.level == Atomics {
			return r, fmt.Errorf("%q is no level", parts[1])
		}
	}
	if len(parts) == 5 {
		if r.schedule, err = strconv.ParseUint(parts[3], 10, 64); err == nil {
			r.steps, err = strconv.Atoi(parts[4])
		}
		return r, err
	}
	r.fixed = true
	for d := range strings.SplitSeq(parts[2], ",") {
		if d == "" {
			continue
		}
		x, err := parseDeviation(d)
		if err != nil {
			return r, err
		}
		r.deviations = append(r.deviations, x)
	}
	return r, nil
}

// A record is a file that says which schedule is under way: a panic that nobody
// recovers ends the process, and nothing else is left to tell.
type record struct {
	file *os.File
	test string
}

// newRecord begins a file. Without one nothing is recorded.
func newRecord(test string, seed uint64) *record {
	name := fmt.Sprintf("ambit-explore-%s-%d", strings.ReplaceAll(test, "/", "-"), os.Getpid())
	file, err := os.Create(filepath.Join(os.TempDir(), name))
	if err != nil {
		return &record{}
	}
	fmt.Fprintf(os.Stderr, "explore: %s: EXPLORE_SEED=%d; should the process end: %s\n", test, seed, file.Name())
	return &record{file, test}
}

// begin notes that r is under way.
func (r *record) begin(s replayed) {
	if r.file != nil {
		_, _ = r.file.WriteAt(fmt.Appendf(nil, "%-120s\n", fmt.Sprintf("EXPLORE_REPLAY='%s' go test -tags explore -run '^%s$'", s, r.test)), 0)
	}
}

func (r *record) name() string {
	if r.file == nil {
		return "nothing: no file could be made"
	}
	return r.file.Name()
}

// close forgets the file: the process has not ended.
func (r *record) close() {
	if r.file != nil {
		_ = r.file.Close()
		_ = os.Remove(r.file.Name())
	}
}
