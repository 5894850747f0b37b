package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// A findings is what the journal of a demo says.
type findings struct {
	added, acked int
	twice        []string // values that were tried more than once
	faults       []string
}

// A biography is what the journal says of one item.
type biography struct {
	added bool
	runs  int
	acked int
	fence int64 // of its first run; 0: that did not come into the journal
}

// report reads the journal and says what is in it. It fails if something is wrong.
func (d *demo) report() error {
	text, err := os.ReadFile(d.journal)
	if err != nil {
		return err
	}
	r := examine(text)
	w := tabwriter.NewWriter(d.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(w, "items added\t%d\t\n", r.added)
	_, _ = fmt.Fprintf(w, "acknowledged\t%d\t\n", r.acked)
	_, _ = fmt.Fprintf(w, "tried twice\t%d\t  %s, of the process that was killed\n", len(r.twice), strings.Join(r.twice, " "))
	_, _ = fmt.Fprintf(w, "faults\t%d\t  lost, acknowledged twice, or out of order\n", len(r.faults))
	if err := w.Flush(); err != nil {
		return err
	}
	for _, f := range r.faults {
		d.sayf("  %s\n", f)
	}
	if len(r.faults) > 0 {
		return errors.New("the report has faults")
	}
	return nil
}

// examine reads a journal. The line that stands there first was written first.
func examine(journal []byte) (r findings) {
	items := map[string]*biography{}
	var lines [][]string
	for in := bufio.NewScanner(bytes.NewReader(journal)); in.Scan(); {
		line := strings.Fields(in.Text())
		if len(line) < 2 {
			r.faults = append(r.faults, "the journal has a line that nobody has written: "+in.Text())
			continue
		}
		lines = append(lines, line)
		b := items[line[1]]
		if b == nil {
			b = &biography{}
			items[line[1]] = b
		}
		switch line[0] {
		case "added":
			b.added = true
			r.added++
		case "run":
			r.run(b, line)
		case "acked":
			if b.acked++; b.acked > 1 {
				r.faults = append(r.faults, line[1]+" was acknowledged twice")
			}
			r.acked++
		}
	}
	for value, b := range items {
		if b.added && b.acked == 0 {
			r.faults = append(r.faults, value+" was lost")
		}
		if b.runs > 1 {
			r.twice = append(r.twice, value)
		}
	}
	r.order(lines, items)
	slices.Sort(r.twice)
	slices.Sort(r.faults)
	if len(r.twice) == 0 {
		r.faults = append(r.faults, "nothing was tried twice, although a process was killed")
	}
	return r
}

// run notes that a consumer has begun with an item.
func (r *findings) run(b *biography, line []string) {
	if b.runs++; b.acked > 0 {
		r.faults = append(r.faults, line[1]+" was run after it was acknowledged")
	}
	if len(line) == 4 && line[2] == "1" {
		b.fence, _ = strconv.ParseInt(line[3], 10, 64)
	}
}

// order looks whether items were claimed in their order: one that was added when another had
// been is claimed no earlier. The fence of an item is the revision of its claim.
func (r *findings) order(lines [][]string, items map[string]*biography) {
	latest, of := int64(0), "" // of the items that had been added so far, the one that was claimed last
	for _, line := range lines {
		b := items[line[1]]
		switch {
		case b.fence == 0: // its first claim is not known
		case line[0] == "adding" && b.fence < latest:
			r.faults = append(r.faults, fmt.Sprintf("%s was claimed before %s, which had been added before it", line[1], of))
		case line[0] == "added" && b.fence > latest:
			latest, of = b.fence, line[1]
		}
	}
}
