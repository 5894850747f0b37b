package asyncz

import (
	"net/http"
	"time"

	"github.com/ambit-go/ambit/async/record"
)

// This file shows what a recorder has.

// A failure is a row of the last failures.
type failure struct{ Name, ID, Ago, Outcome, Error string }

// listedFailures is how many are shown.
const listedFailures = 20

// recording returns what was recorded, without texts unless they are to be shown.
func (p *Page) recording() *record.Recording {
	r := p.rec.Recording()
	for i := range r.Failures {
		if !p.texts {
			r.Failures[i].Text = ""
		}
	}
	return r
}

// lastFailures returns the last failures, the last one first.
func (p *Page) lastFailures(now time.Time) (all []failure) {
	if p.rec == nil {
		return nil
	}
	last := p.recording().Failures
	for i := len(last) - 1; i >= 0 && len(all) < listedFailures; i-- {
		f := &last[i]
		one := failure{Name: clean(f.Task), ID: f.ID.String(), Outcome: f.Outcome, Error: clean(f.Type)}
		one.Ago = short(max(now.Sub(f.At), 0).Truncate(time.Millisecond))
		if f.Text != "" {
			one.Error += ": " + clean(f.Text)
		}
		all = append(all, one)
	}
	return all
}

// serveRecorded answers with a file.
func (p *Page) serveRecorded(w http.ResponseWriter, format string) {
	if r := p.recording(); format == "trace" {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Disposition", `attachment; filename="async-trace.json"`)
		_ = r.WriteTrace(w) // whoever has asked may be gone
	} else {
		w.Header().Set("Content-Type", "application/gzip")
		w.Header().Set("Content-Disposition", `attachment; filename="async-recording.gz"`)
		_ = r.Save(w)
	}
}
