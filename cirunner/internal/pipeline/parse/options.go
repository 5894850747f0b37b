package parse

import "github.com/ambit-go/ambit/cirunner/internal/pipeline"

// Options are the run for which a file is read: rules, only and include depend on
// it. The zero value is a run for a branch called local, of which no file is
// known.
type Options struct {
	// Dir is the directory of the project: include:local is relative to it. Empty
	// means the current one.
	Dir string

	// IncludeDir is where copies lie of what include takes from elsewhere; empty
	// means that such includes are errors.
	IncludeDir string

	// Projects are where files of other projects come from that have no copy; nil if from
	// nowhere.
	Projects Projects

	// Inputs are those of the file, as YAML.
	Inputs map[string]string

	// Variables are the predefined variables of the run. Without any, it is a push
	// to the branch local.
	Variables map[string]string

	// Set are variables over all others, also those of jobs: what was given on the
	// command line.
	Set map[string]string

	// Project returns the project's variables for jobs of an environment, which is empty for
	// none. They are over those of files and jobs, and under Set. It may be nil.
	Project func(environment string) []pipeline.Variable

	// Elsewhere reports whether the environment of the runner has a variable. It may be nil.
	Elsewhere func(name string) bool

	// Changed returns the files that have changed since a commit, or, for an empty
	// name, in this run. It reports false if that cannot be known: then everything
	// counts as changed. It may be nil, which means the same.
	Changed func(since string) ([]string, bool)

	// HasCommit reports whether a commit has a name: changes:compare_to of one that has
	// not is an error. It may be nil: then every name is right.
	HasCommit func(name string) bool

	// Files returns the files of the project, with slashes, for rules:exists. It
	// may be nil: then there are none.
	Files func() []string

	// Strict makes errors of what would be passed over with a warning.
	Strict bool

	// Containers says that jobs with an image run in containers: the keyword image is
	// read, and services that are images.
	Containers bool

	// Cache says that caches are kept: the keyword cache is read, not ignored.
	Cache bool
}
