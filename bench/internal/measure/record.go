package measure

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// A Record is one thing that a program has measured, as it hands it on: one of its fields is set.
type Record struct {
	Row   *Row   `json:"row,omitempty"`
	Curve *Curve `json:"curve,omitempty"`
	Queue *Queue `json:"queue,omitempty"`
	Ran   *Ran   `json:"ran,omitempty"`
}

// A Curve is how many units a second are done, by how many workers, producers, consumers or processors.
type Curve struct {
	ID, Group, What string
	Axis            string // workers
	Points          []Point
	Waits           bool // a unit waits and does not compute
}

// A Point is the throughput with N at work, in units a second.
type Point struct {
	N int
	X Sample
}

// Queue is how long jobs wait for one consumer, in nanoseconds, and what Kingman's formula says.
type Queue struct {
	ID                 string
	Jobs               int
	Load               float64 // the share of time in which the consumer is busy
	Service            float64 // how long a job takes
	Arrivals, Services float64 // squared coefficients of variation
	Waited, Kingman    float64
}

// Ran says where and when it was measured.
type Ran struct {
	Program    string  // budgets
	Go, System string  // go1.26.0, linux/amd64
	Cores      int     // GOMAXPROCS
	Began      string  // 2026-11-27
	Quick      bool    // fewer and shorter turns
	Load       float64 // of the machine in the minute before, negative where it is not told
	Took       float64 // seconds
	Missing    string  // why it was not measured
}

// mark begins the lines of a program that are records; it may print others.
const mark = "measured: "

// Write writes a record as one line, for Read.
func Write(w io.Writer, r Record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", mark, text)
	return err
}

// Read calls record with each record that a program has written, and other with its other lines.
func Read(from io.Reader, record func(Record), other func(line string)) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		_, text, ok := strings.Cut(lines.Text(), mark)
		if !ok {
			other(lines.Text())
			continue
		}
		var r Record
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return fmt.Errorf("%q: %w", text, err)
		}
		record(r)
	}
	return lines.Err()
}
