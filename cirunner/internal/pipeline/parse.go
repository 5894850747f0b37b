// Package pipeline reads a pipeline file in the GitLab CI dialect and resolves
// it into a [Pipeline], in which nothing is left to look up: anchors, merge
// keys, !reference, extends, default, parallel and needs are done with.
//
// It is strict: a keyword that it does not know, or knows and does not support,
// is an error, never silence. And it is patient: [Parse] reports everything
// that is wrong with a file, not the first thing.
//
// The steps, each in a file of its own:
//
//	load.go      text to YAML, within limits
//	tree.go      YAML to a tree: aliases, duplicate keys
//	merge.go     merge keys
//	extends.go   extends
//	reference.go !reference
//	top.go       the keywords of the file: stages, default, the names of jobs
//	job.go       the keywords of a job; the larger ones have files of their own
//	parallel.go  a job to its parts
//	graph.go     needs, stages, cycles, artifacts: from names to jobs
//
// model.go is what comes out, problem.go what is wrong, and field.go reads
// values of a kind.
//
// The YAML library is go.yaml.in/yaml/v4, the line that the YAML organisation
// maintains: its nodes and its syntax errors have lines and columns, an alias
// is a pointer and not a copy, and the depth of a document can be limited.
package pipeline

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Parse reads a pipeline file for a run of which nothing is known but that it is
// that of a branch. name is what positions call the file.
//
// Its error is an [*Errors] with everything that is wrong with the file, as far
// as it can be told: a file that is not YAML has one error. Parse takes bounded
// time and memory whatever data is.
func Parse(name string, data []byte) (*Pipeline, error) { return Options{}.Parse(name, data) }

// ParseFile reads a pipeline file by its name, as Parse does. It reads no more of
// it than a pipeline file may have. Its error is that of [Parse], or says why the
// file cannot be read.
func ParseFile(name string) (*Pipeline, error) { return Options{}.ParseFile(name) }

// Parse reads a pipeline file for a run. name is what positions call the file;
// what it includes is read as well. Its error is that of the function [Parse].
func (o Options) Parse(name string, data []byte) (*Pipeline, error) {
	p := &parser{problems: problems{strict: o.Strict}, options: o, budget: maxNodes,
		targets: make(map[*node]*node), broken: make(map[string]bool), scripts: make(map[*node][]string),
		inherited: make(map[*node]bool)}
	p.run = o.variables()
	pipeline := p.pipeline(name, data)
	if err := p.problems.err(); err != nil {
		return nil, err
	}
	pipeline.Warnings = p.sortedWarnings()
	return pipeline, nil
}

// ParseFile reads a pipeline file by its name, as Parse does. Its error is that
// of Parse, or says why the file cannot be read.
func (o Options) ParseFile(name string) (*Pipeline, error) {
	data, err := readFile(name)
	if err != nil {
		return nil, err
	}
	return o.Parse(name, data)
}

// readFile reads a file, no more of it than a pipeline may have.
func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, cannotRead(name, err)
	}
	if info.Mode()&os.ModeNamedPipe != 0 && !strings.HasPrefix(name, "/dev/") {
		return nil, fmt.Errorf("%s: it is a named pipe, for whose writer one would wait: name a file, or /dev/stdin", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, cannotRead(name, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, cannotRead(name, err)
	}
	return data, nil
}

// cannotRead leaves out how the operating system was asked.
func cannotRead(name string, err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("%s: cannot read it: %w", name, err)
}

// A parser holds what the steps share.
type parser struct {
	problems
	options   Options
	run       map[string]string // the variables of the run
	reading   int               // the place in files of the one that becomes nodes
	includes  int               // how many files were included
	left      []*Left
	why       string // why there is no pipeline
	guarded   bool   // there are workflow:rules, which take away what only is by default
	root      *node
	budget    int                // of nodes that merging may still make
	targets   map[*node]*node    // of the references
	broken    map[string]bool    // jobs that extend what they cannot
	scripts   map[*node][]string // what lists of commands come to
	inherited map[*node]bool     // lists of inherit that have been checked
	stages    []string
	globals   []Variable
	defaults  map[string]*node
	drafts    []*draft
}

// pipeline takes the steps in turn. Each goes as far as it can after the errors
// of those before it.
func (p *parser) pipeline(name string, data []byte) *Pipeline {
	p.root = p.file(name, data)
	switch {
	case p.root == nil:
		return nil
	case p.root.kind == null:
		p.errorf(mark{1, 1, 0}, "the file has no job: a job is a name with a script, such as\n%s", smallest)
		return nil
	case p.root.kind != mapping:
		p.errorf(p.root.at, "a pipeline should be a mapping of names to jobs, not %s", p.root)
		return nil
	}
	found := len(p.problems.list)
	p.root = p.withIncludes(p.root, cmp.Or(p.options.Dir, "."), 0)
	if len(p.problems.list) > found {
		return nil // what was to be included would be missing wherever it is used
	}
	p.extend()
	if p.budget < 0 {
		return nil
	}
	p.references()
	p.globalKeywords()
	p.workflow()
	p.jobs()
	if len(p.drafts) == 0 && len(p.problems.list) == 0 {
		p.errorf(mark{1, 1, 0}, "the file has no job: a job is a name without a dot before it, with a script, such as\n%s", smallest)
	}
	return p.resolve()
}

// file makes a tree of a file; nil if it is not YAML.
func (p *parser) file(name string, data []byte) *node {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	p.files = append(p.files, source{name, data})
	p.reading = len(p.files) - 1
	document := p.load(data)
	if document == nil {
		return nil
	}
	return p.tree(document)
}

// mark returns a place in the file that is read.
func (p *parser) mark(line, column int) mark { return mark{line, column, p.reading} }

const smallest = "\ttest:\n\t  script: make test"
