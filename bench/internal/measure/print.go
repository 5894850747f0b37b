package measure

import (
	"fmt"
	"io"
	"unicode/utf8"
)

var widths = []int{5, 72, 24, 10}

// PrintHeader prints the names of the columns of Print.
func PrintHeader(w io.Writer) {
	line(w, "", "work", "measured", "budget", "verdict")
}

// Print prints a row for people.
func (r Row) Print(w io.Writer) {
	what := r.What
	if r.Peer != "" {
		what += " / " + r.Peer
	}
	line(w, r.ID, what, r.Measured(), r.Bound(), r.Verdict().String())
}

func line(w io.Writer, cells ...string) {
	for i, c := range cells {
		if i == len(cells)-1 {
			_, _ = fmt.Fprintln(w, c)
			return
		}
		_, _ = fmt.Fprintf(w, "%s%*s ", c, max(0, widths[i]-utf8.RuneCountInString(c)), "")
	}
}
