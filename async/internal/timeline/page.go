package timeline

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"io"
	"time"
)

// This file is the time line as part of a page, and the recording that a saved page has in it.

var (
	//go:embed timeline.html
	markup string
	// Style is the style of the time line, beside that of the page.
	//
	//go:embed timeline.css
	Style string
	// Player is a script that plays the recording of a saved page.
	//
	//go:embed player.js
	Player string
)

// Markup has the template "timeline", which draws a [Drawing]; it needs [Funcs].
func Markup() string { return markup }

// Funcs are what the template calls.
func Funcs() template.FuncMap {
	return template.FuncMap{
		"stamp": func(t time.Time) int64 { return t.UnixMilli() },
		"short": Short,
		"span":  func(d *Drawing) string { return Short(d.To.Sub(d.From)) },
	}
}

// PageBegins is what the pages begin with that have a recording in them.
const PageBegins = "<!doctype html>"

// The element that has the recording.
const (
	dataBegins = `<script type="application/gzip" id="recording">`
	dataEnds   = `</script>`
)

// Data returns an element that holds a recording, as it is in a file.
func Data(recording []byte) template.HTML {
	return template.HTML(dataBegins + base64.StdEncoding.EncodeToString(recording) + dataEnds)
}

// mostPage bounds what is read of a page.
const mostPage = 512 << 20

// DataIn returns the recording that a page has in it.
func DataIn(page io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(page, mostPage))
	if err != nil {
		return nil, err
	}
	_, rest, ok := bytes.Cut(text, []byte(dataBegins))
	data, _, ended := bytes.Cut(rest, []byte(dataEnds))
	if !ok || !ended {
		return nil, errors.New("there is no recording in the page")
	}
	out := make([]byte, base64.StdEncoding.DecodedLen(len(data)))
	n, err := base64.StdEncoding.Decode(out, data)
	if err != nil {
		return nil, fmt.Errorf("the recording in the page is damaged: %w", err)
	}
	return out[:n], nil
}
