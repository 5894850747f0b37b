package tree

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
)

// MaxSize is how many bytes a pipeline file may have.
const MaxSize = pipeline.MaxSize

const (
	maxDepth      = 100 // levels of YAML, as in GitLab
	maxDirectives = 10  // lines that begin with %
)

// load returns the only document of a file, or nil if it is not YAML.
func (p *Reader) load(data []byte) *yaml.Node {
	if !p.readable(data) {
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithV4Defaults(),
		yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxDepth))))
	if err != nil {
		p.syntax(err)
		return nil
	}
	var first yaml.Node
	switch err := loader.Load(&first); {
	case err == io.EOF:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: 1, Column: 1}
	case err != nil:
		p.syntax(err)
		return nil
	}
	if !p.endsHere(loader) {
		return nil
	}
	return first.Content[0]
}

// endsHere reports whether there is nothing after the first document: empty ones,
// such as a --- at the end begins, are passed over.
func (p *Reader) endsHere(loader *yaml.Loader) bool {
	for {
		var next yaml.Node
		switch err := loader.Load(&next); {
		case err == io.EOF:
			return true
		case err != nil:
			p.syntax(err)
			return false
		case next.Content[0].ShortTag() != "!!null":
			p.Errorf(p.mark(next.Line, next.Column), "a second document begins here (after ---): "+
				"a pipeline is one document, below a header with spec if it has one")
			return false
		}
	}
}

// readable reports whether data is worth a YAML parser's time: that would take
// long for some files, and would not say where the others are wrong.
func (p *Reader) readable(data []byte) bool {
	if len(data) > MaxSize {
		p.Errorf(p.mark(1, 1), "the file has more than %d bytes, which is too much for a pipeline; is this the right file?", MaxSize)
		return false
	}
	directives := 0
	at := p.mark(1, 1)
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			p.Errorf(at, "this is not UTF-8: the byte 0x%02x; is this the right file?", data[i])
			return false
		case isBinary(r):
			p.Errorf(at, "a control character (%U) cannot be in a pipeline file; is this the right file?", r)
			return false
		case r == 0x85 || r == 0x2028 || r == 0x2029:
			p.Errorf(at, "%U ends a line for YAML, but for no editor: take it out, or write \"\\u%04x\" in double quotes", r, r)
			return false
		case r == '%' && at.Column == 1:
			directives++
		}
		if directives > maxDirectives {
			p.Errorf(at, "too many YAML directives, lines that begin with %%: a pipeline needs none")
			return false
		}
		at.Column++
		if r == '\n' {
			at = p.mark(at.Line+1, 1)
		}
		i += size
	}
	return true
}

// isBinary reports whether YAML rules a character out.
func isBinary(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f
}

// syntax reports an error of the YAML parser.
func (p *Reader) syntax(err error) {
	var load *yaml.LoadError
	if !errors.As(err, &load) {
		p.Errorf(p.mark(1, 1), "not YAML: %v", err)
		return
	}
	at := p.mark(load.Mark.Line, load.Mark.Column)
	text := load.Message
	if load.ContextMsg != "" {
		text = load.ContextMsg + ", " + text
	}
	p.Errorf(at, "not YAML: %s%s", text, p.syntaxAdvice(load))
}

// syntaxAdvice says what most often is behind an error of the YAML parser.
func (p *Reader) syntaxAdvice(load *yaml.LoadError) string {
	switch {
	case strings.Contains(load.Message, "mapping values are not allowed"):
		return `: a text with ": " in it needs quotes around it`
	case strings.Contains(load.Message, "cannot start any token"):
		return ": indent with spaces, not tabs; a text that begins with @, ` or % needs quotes"
	case strings.Contains(load.Message, "unknown anchor"):
		return ": an anchor (&name) must stand above its use (*name); a text that begins with * needs quotes"
	case strings.Contains(load.Message, "did not find expected key"),
		strings.Contains(load.Message, "did not find expected '-' indicator"):
		return ": look at the indentation here and above"
	case strings.Contains(load.Message, "end of stream"):
		return ": a quote or a bracket above is not closed"
	}
	return ""
}
