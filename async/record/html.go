package record

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"io"

	"github.com/ambit-go/ambit/async/internal/timeline"
)

// This file is a recording as a page.

//go:embed page.html
var markup embed.FS

//go:embed page.css
var style string

var document = template.Must(template.Must(template.New("page.html").Funcs(timeline.Funcs()).Funcs(template.FuncMap{
	"style":  func() template.CSS { return template.CSS(style + timeline.Style) },
	"script": func() template.JS { return template.JS(timeline.Player) },
	"policy": func() string {
		return "default-src 'none'; style-src " + hashed(style+timeline.Style) + "; script-src " + hashed(timeline.Player) +
			"; base-uri 'none'; form-action 'none'"
	},
}).ParseFS(markup, "page.html")).Parse(timeline.Markup()))

func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// A pageOf is what the page shows.
type pageOf struct {
	*Recording
	Drawing *timeline.Drawing
	Last    []Failure // the last one first
	Data    template.HTML
}

// mostListed is how many failures are listed.
const mostListed = 50

// WriteHTML writes the recording to w as one page, which needs no server and no network: a time line of the tasks,
// and the last failures.
//
//	err := recording.WriteHTML(file)
//
// # Details
//
// A browser opens it from the file. With scripts it plays the recording: at each moment it names the tasks that
// were under way; without them the time line stands still. 200 tasks have a row: what was live, failures, the
// longest and the newest. The whole recording is in the page, so [Open] reads it.
func (r *Recording) WriteHTML(w io.Writer) error {
	var data, page bytes.Buffer
	if err := r.Save(&data); err != nil {
		return err
	}
	drawing := timeline.Draw(timeline.Tasks(r.parts()), r.began(), r.At, timeline.Most)
	shown := pageOf{Recording: r, Drawing: drawing, Data: timeline.Data(data.Bytes())}
	shown.Drawing.Lost, shown.Drawing.Spared = r.Lost, r.Spared
	for i := len(r.Failures) - 1; i >= 0 && len(shown.Last) < mostListed; i-- {
		shown.Last = append(shown.Last, r.Failures[i])
	}
	if err := document.Execute(&page, &shown); err != nil {
		panic(err) // the template is ours
	}
	_, err := w.Write(page.Bytes())
	return err
}

// parts returns the recording as package timeline takes it.
func (r *Recording) parts() (events []timeline.Event, waits []timeline.OverWait, live []timeline.Live) {
	for i := range r.Events {
		events = append(events, timeline.Event(r.Events[i]))
	}
	for i := range r.Waits {
		waits = append(waits, timeline.OverWait(r.Waits[i]))
	}
	for i := range r.Live {
		live = append(live, timeline.Live(r.Live[i]))
	}
	return events, waits, live
}
