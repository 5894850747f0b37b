package view

import (
	"fmt"
	"html"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// SVG returns a picture of a terminal that shows these lines.
func SVG(lines []string, columns int) string {
	const cw, lh, pad = 8.4, 19, 16
	var b strings.Builder
	width, height := float64(columns)*cw+2*pad, len(lines)*lh+2*pad
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %.0f %d">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="#15191f"/>`+"\n")
	fmt.Fprintf(&b, `<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="14" fill="#d5d9de">`+"\n")
	for i, l := range lines {
		y := pad + lh*i + lh*3/4
		column := 0
		for _, s := range spans(l) {
			w := ansi.StringWidth(s.text)
			if strings.TrimSpace(s.text) != "" {
				// textLength keeps columns in line whatever font there is.
				fmt.Fprintf(&b, `<text x="%.1f" y="%d" textLength="%.1f" xml:space="preserve"%s>%s</text>`+"\n",
					pad+float64(column)*cw, y, float64(w)*cw, s.style, html.EscapeString(s.text))
			}
			column += w
		}
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

// A span is text in one style.
type span struct{ text, style string }

// styles are the attributes of what tree.go uses.
var styles = map[string]string{
	"1": ` font-weight="bold"`, "2": ` fill="#7d8590"`,
	"31": ` fill="#f4726b"`, "32": ` fill="#57c26a"`, "33": ` fill="#e0b13d"`, "35": ` fill="#c297f5"`, "36": ` fill="#4cc3d9"`,
}

// spans splits a line at its escape sequences.
func spans(line string) []span {
	var all []span
	style := ""
	for i, part := range strings.Split(line, "\x1b[") {
		if i > 0 {
			code, rest, _ := strings.Cut(part, "m")
			style, part = "", rest
			for c := range strings.SplitSeq(code, ";") {
				style += styles[c]
			}
		}
		if part != "" {
			all = append(all, span{part, style})
		}
	}
	return all
}
