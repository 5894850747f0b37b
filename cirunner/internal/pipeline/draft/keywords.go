// Package draft reads the keywords of a file: its jobs as they are written, rules and
// needs as values. Nothing is decided here for a run, and no name is looked up.
package draft

import (
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
)

// A Parser reads the keywords of a file.
type Parser struct {
	*tree.Reader
	options   Settings
	file      *tree.Node
	inherited map[*tree.Node]bool     // lists of inherit that have been checked
	scripts   map[*tree.Node][]string // what lists of commands come to
	Stages    []string
	Globals   []pipeline.Variable
	defaults  map[string]*tree.Node
	drafts    []*Draft
}

// A Settings says what keywords mean in a run.
type Settings struct {
	Child bool // it is the pipeline that a job of another has started

	// Cache says that caches are kept, containers that jobs with an image run in them.
	Cache, Containers bool

	// IsProject reports whether a path is that of the project of the run.
	IsProject func(path string) bool
}

// NewParser returns a parser whose files are read by a reader.
func NewParser(r *tree.Reader, options Settings) *Parser {
	return &Parser{Reader: r, options: options, scripts: make(map[*tree.Node][]string), inherited: make(map[*tree.Node]bool)}
}
