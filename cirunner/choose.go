//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/exit"
	"github.com/ambit-go/ambit/cirunner/internal/lint"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/parse"
	"github.com/ambit-go/ambit/cirunner/internal/predefined"
	"github.com/ambit-go/ambit/cirunner/internal/projectvars"
	"github.com/ambit-go/ambit/cirunner/internal/remote"
)

// A choice is what the flags say about which jobs run: what kind of run it is, and
// how its file is read.
type choice struct {
	wish       predefined.Wish
	set        assignments
	only       names
	includeDir string
	includeGit string
	inputs     assignments
	strict     bool
	dryRun     bool
	caches     string
	masked     names
	variables  string // a file
	protected  names
	containers containers

	run     *predefined.Run   // set by load
	project *projectvars.File // set by check; nil without
	server  *remote.Server    // set by check; nil without
}

func (c *choice) define(flags *flag.FlagSet) {
	flags.StringVar(&c.wish.Branch, "branch", "", "run as for this `branch` (default the one that is checked out)")
	flags.StringVar(&c.wish.Tag, "tag", "", "run as for this `tag`")
	flags.StringVar(&c.wish.Merge, "mr", "", "run as for a merge request to this `branch`")
	flags.Var(&c.set, "var", "set a variable, `NAME=value`, over those of the file and of jobs; may be repeated")
	flags.Var(&c.only, "job", "run only the job of this `name`, with its needs; may be repeated")
	flags.StringVar(&c.includeDir, "include-dir", "", "a `directory` with copies of what include takes from elsewhere")
	flags.StringVar(&c.includeGit, "include-git", "", "the `address` of a git server from which include takes files of projects and components that have no copy, such as https://gitlab.com")
	flags.Var(&c.inputs, "input", "give the file an input, `NAME=value`; may be repeated")
	flags.BoolVar(&c.strict, "strict", false, "what the file says and cirunner passes over is an error")
	flags.StringVar(&c.caches, "cache", "", "a `directory` in which the files of cache are kept from run to run")
	flags.Var(&c.masked, "mask", "hide the value of the variable of this `name` in logs; may be repeated")
	flags.StringVar(&c.variables, "variables", "", "a `file` of project variables, which only its owner may read")
	flags.Var(&c.protected, "protected", "branches and tags of this `pattern` are protected, such as v*; may be repeated (default the default branch)")
	c.containers.define(flags)
	flags.BoolVar(&c.dryRun, "dry-run", false, "only print what would be run")
}

func (c *choice) check() error {
	if c.containers.host && c.containers.client+c.containers.run != "" {
		return exit.Usagef("-host is instead of -engine and -engine-run")
	}
	if c.wish.Tag != "" && (c.wish.Branch != "" || c.wish.Merge != "") {
		return exit.Usagef("-tag is instead of -branch and -mr")
	}
	if err := c.checkKind(); err != nil {
		return err
	}
	if c.includeGit != "" {
		c.server = &remote.Server{Base: c.includeGit}
	}
	return c.readVariables()
}

// kinds are the variables that are set by another flag: with -var alone a run would be
// of two kinds at once, and jobs of both would run.
var kinds = map[string]string{
	"CI_COMMIT_BRANCH": "-branch", "CI_COMMIT_TAG": "-tag", "CI_COMMIT_REF_NAME": "-branch or -tag",
	"CI_MERGE_REQUEST_IID": "-mr", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "-mr",
}

// checkKind refuses -var for what another flag says.
func (c *choice) checkKind() error {
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		if _, set := c.set[name]; set {
			return exit.Usagef("-var %s: use %s", name, kinds[name])
		}
	}
	if source := c.set["CI_PIPELINE_SOURCE"]; strings.HasSuffix(source, "_request_event") && c.wish.Merge == "" {
		return exit.Usagef("-var CI_PIPELINE_SOURCE=%s: use -mr", source)
	}
	return nil
}

// readVariables reads the file of project variables, if there is one.
func (c *choice) readVariables() (err error) {
	if c.variables == "" {
		return nil
	}
	if c.project, err = projectvars.Read(c.variables); err != nil {
		return exit.Usagef("-variables %v", err)
	}
	return nil
}

// options returns how a file of a project is read.
func (c *choice) options(ctx context.Context, dir string) parse.Options {
	c.run = predefined.New(ctx, dir, c.wish)
	c.run.Protect(c.protected)
	protected := c.run.Variables["CI_COMMIT_REF_PROTECTED"] == "true"
	return parse.Options{
		Projects: c.projects(ctx), Inputs: c.inputs,
		Dir: dir, IncludeDir: c.includeDir, Strict: c.strict, Cache: c.caches != "", Containers: !c.containers.host,
		Project:   func(environment string) []pipeline.Variable { return c.project.For(protected, environment) },
		Elsewhere: func(name string) bool { _, there := os.LookupEnv(name); return there },
		Variables: c.run.Variables, Set: c.set, Changed: c.run.Changed, HasCommit: c.run.HasCommit, Files: c.run.Files,
	}
}

// load reads and checks the file, and prints its warnings.
func (o *options) load(ctx context.Context, args []string, out io.Writer) (*pipeline.Pipeline, error) {
	file, err := o.file(args)
	if err != nil {
		return nil, err
	}
	options := o.readOptions(ctx)
	defer func() { _ = o.choice.server.Close() }()
	if target := o.choice.wish.Merge; target != "" && !o.choice.run.HasCommit(target) {
		return nil, exit.Usagef("-mr %s: git knows no such branch", target) // everything would count as changed
	}
	p, err := options.ParseFile(file)
	var found *pipeline.Errors
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(args) == 0:
		return nil, exit.Usagef("there is no %s, here or at the root of a repository around; name a file, or the directory of the project with -C", file)
	case errors.As(err, &found):
		return nil, &exit.Error{Err: fmt.Errorf("this is no pipeline:\n%s", found.Detail())}
	case err != nil:
		return nil, &exit.Error{Err: err}
	}
	out = o.choice.masking(out)
	for _, w := range p.Warnings {
		if _, err := fmt.Fprintln(out, w); err != nil {
			return nil, fmt.Errorf("cannot write: %w", err)
		}
	}
	return p, nil
}

// file returns the file that is to be run. If none is named and the current directory has
// none, the project is the repository around it.
func (o *options) file(args []string) (string, error) {
	switch {
	case len(args) > 1:
		return "", exit.Usagef("one file at a time, not %d", len(args))
	case len(args) == 1:
		return args[0], nil
	}
	file := filepath.Join(o.dir, defaultFile)
	if _, err := os.Stat(file); o.dir != "." || !errors.Is(err, fs.ErrNotExist) {
		return file, nil
	}
	root := projectOf(file)
	if _, err := os.Stat(filepath.Join(root, defaultFile)); err != nil {
		return file, nil // which there is not
	}
	o.dir = root
	return filepath.Join(root, defaultFile), nil
}

func (o *options) readOptions(ctx context.Context) parse.Options {
	return o.choice.options(ctx, o.dir)
}

// chosen returns the jobs that are to run, and the manual ones that were asked
// for: by -manual, or because -job needs them.
func (o *options) chosen(p *pipeline.Pipeline) (*pipeline.Pipeline, map[string]bool, error) {
	if p.Why != "" {
		return nil, nil, &exit.Error{Err: fmt.Errorf("no job would run: %s; see cirunner list, and -branch, -tag, -mr and -var", p.Why)}
	}
	if err := o.choice.checkMasks(p); err != nil {
		return nil, nil, err
	}
	asked, err := o.manual.among(p)
	if err != nil || len(o.choice.only) == 0 {
		return p, asked, err
	}
	p, err = o.choice.some(p, asked)
	return p, asked, err
}

// some returns the pipeline of the jobs of -job, and adds those that are asked for by that.
func (c *choice) some(p *pipeline.Pipeline, asked map[string]bool) (*pipeline.Pipeline, error) {
	p, err := p.Only(c.only)
	if err != nil {
		return nil, &exit.Error{Err: err}
	}
	for _, j := range p.Jobs {
		if j.Asked {
			asked[j.Name] = true
		}
	}
	return p, nil
}

// checkMasks refuses a name that no job has: one that is mistyped would hide
// nothing. A pipeline that a job makes may have it.
func (c *choice) checkMasks(p *pipeline.Pipeline) error {
	for _, name := range c.masked {
		if !c.knows(p, name) && !p.MayGrow() {
			return exit.Usagef("-mask %s: no job has a variable of that name", name)
		}
	}
	return nil
}

// knows reports whether there is a variable of a name.
func (c *choice) knows(p *pipeline.Pipeline, name string) bool {
	_, known := os.LookupEnv(name)
	_, predefined := c.run.Variables[name]
	return known || predefined || slices.ContainsFunc(p.Jobs, func(j *pipeline.Job) bool {
		return slices.ContainsFunc(j.Variables, func(v pipeline.Variable) bool { return v.Name == name })
	})
}

// list prints which jobs would run.
func (o *options) list(ctx context.Context, args []string, out io.Writer) error {
	p, err := o.load(ctx, args, out)
	if err != nil {
		return err
	}
	asked, err := o.manual.among(p)
	if err != nil {
		return err
	}
	if len(o.choice.only) > 0 {
		if p, err = o.choice.some(p, asked); err != nil {
			return err
		}
		p.Left = nil
	}
	return lint.List(p, asked, o.choice.masking(out))
}

// lint checks files. Local includes are those of the repository that a file is
// in, or of its directory.
func (o *options) lint(ctx context.Context, files []string, out io.Writer) error {
	defer func() { _ = o.choice.server.Close() }()
	return lint.Run(files, func(file string) parse.Options {
		return o.choice.options(ctx, projectOf(file))
	}, o.choice.masking(out))
}

// projectOf returns the root of the repository that a file is in, or its
// directory.
func projectOf(file string) string {
	abs, err := filepath.Abs(file)
	if err != nil {
		return filepath.Dir(file)
	}
	for dir := filepath.Dir(abs); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return filepath.Dir(abs)
		}
	}
}

// assignments is a flag NAME=value that may be repeated.
type assignments map[string]string

func (a *assignments) String() string { return "" }

// Set adds a variable.
func (a *assignments) Set(s string) error {
	name, value, found := strings.Cut(s, "=")
	if !found || !pipeline.IsVariable(name) {
		return errors.New("it should be NAME=value, a name of letters, digits and _")
	}
	if *a == nil {
		*a = assignments{}
	}
	(*a)[name] = value
	return nil
}
