package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// write prints r, as a table or in JSON.
func (r *report) write(out io.Writer, asJSON bool) error {
	w := bufio.NewWriter(out) // it keeps the first error, so only Flush is asked
	if asJSON {
		r.writeJSON(w)
	} else {
		r.writeTable(w)
	}
	return w.Flush()
}

func (r *report) writeJSON(w io.Writer) {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	enc.Encode(r)
}

func (r *report) writeTable(w io.Writer) {
	fmt.Fprintf(w, "%s, crawled in %.1f s\n", r.Start, r.Seconds)
	if r.Stopped != "" {
		fmt.Fprintf(w, "incomplete: %s\n", r.Stopped)
	}
	fmt.Fprintln(w)
	for _, row := range r.rows() {
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%12s  %11s  %s", row.what, row.n, row.meaning), " "))
	}
	r.writeSlowest(w)
	r.writeBroken(w)
}

type row struct{ what, n, meaning string }

// rows are the lines of the table. Those that count links left alone are there
// only if there are any.
func (r *report) rows() []row {
	rows := []row{
		{"pages", count(r.Pages), fmt.Sprintf("each fetched once: %s HTML, parsed for links; %s of other types", count(r.HTML), count(r.Files))},
		{"bytes", megabytes(r.Bytes), "in the bodies of all answers"},
		{"pages/s", count(int(r.PagesPerSecond)), ""},
		{"redirects", count(r.Redirects), ""},
		{"broken links", count(len(r.Broken)), ""},
	}
	for _, left := range []struct {
		what    string
		n       int
		meaning string
	}{
		{"cut off", r.Cut, fmt.Sprintf("pages with more than the %d MiB or %s links that are read of one", maxBody>>20, count(maxLinks))},
		{"off site", r.OffSite, "links to other sites, not followed"},
		{"disallowed", r.Disallowed, "links that robots.txt excludes, not followed"},
		{"too deep", r.TooDeep, "links further away than -depth, not followed"},
		{"unvisited", r.Unvisited, "links found, but not fetched to the end before the stop"},
	} {
		if left.n > 0 {
			rows = append(rows, row{left.what, count(left.n), left.meaning})
		}
	}
	return rows
}

func (r *report) writeSlowest(w io.Writer) {
	if len(r.Slowest) == 0 {
		return
	}
	fmt.Fprint(w, "\nSlowest pages\n")
	for _, t := range r.Slowest {
		fmt.Fprintf(w, "%9.1f ms  %s\n", t.Milliseconds, t.URL)
	}
}

func (r *report) writeBroken(w io.Writer) {
	const most = 20
	if len(r.Broken) == 0 {
		return
	}
	fmt.Fprint(w, "\nBroken links\n")
	for _, b := range r.Broken[:min(most, len(r.Broken))] {
		fmt.Fprintf(w, "  %s: %s\n", b.URL, b.Problem)
		for _, from := range b.FoundOn {
			fmt.Fprintf(w, "    on %s\n", from)
		}
		if b.More > 0 {
			fmt.Fprintf(w, "    and on %s more\n", count(b.More))
		}
	}
	if more := len(r.Broken) - most; more > 0 {
		fmt.Fprintf(w, "  and %s more: see -json\n", count(more))
	}
}

// count writes n with separators: 12,345.
func count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
