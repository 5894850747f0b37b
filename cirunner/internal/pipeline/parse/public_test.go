package parse

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
)

// TestPublicShapes reads files of the structure of public ones, and compares the
// jobs with what GitLab has in a pipeline of each kind. Beside the pipeline in each
// archive stands want, with a line for each kind of run of package rules_test, or
// for what else there is to say:
//
//	main: build, test, deploy/manual
//	mr: none
//	tag: error: the first line of what is wrong
//	warn: the keywords that are passed over for a branch
//	include-dir: where copies lie
func TestPublicShapes(t *testing.T) {
	files, err := filepath.Glob("../../../testdata/public/*.txtar")
	require.NoError(t, err)
	read := 0
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			s := readShape(t, file)
			for kind := range kinds {
				if want, given := s.want[kind]; given {
					require.Equal(t, want, s.jobs(kind), kind)
				}
			}
			require.NotEmpty(t, s.want["main"]+s.want["mr"]+s.want["branch"])
			if want, given := s.want["warn"]; given {
				require.Equal(t, want, s.warnings())
			}
			if !strings.HasPrefix(s.want["main"], "error: ") {
				read++
			}
		})
	}
	// Those with a file .want beside them are run, too: see the test of the program.
	others, err := filepath.Glob("../../../testdata/public/*.want")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files)+len(others), 60)
	require.GreaterOrEqual(t, read+len(others), 55)
}

// A shape is one archive, unpacked.
type shape struct {
	dir   string
	data  []byte
	files []string
	want  map[string]string
}

func readShape(t *testing.T, file string) *shape {
	archive, err := txtar.ParseFile(file)
	require.NoError(t, err)
	s := &shape{dir: t.TempDir(), want: map[string]string{}}
	for _, f := range archive.Files {
		switch f.Name {
		case "want":
			for line := range strings.Lines(string(f.Data)) {
				key, value, found := strings.Cut(strings.TrimSpace(line), ":")
				require.True(t, found, line)
				s.want[key] = strings.TrimSpace(value)
			}
			continue
		case ".gitlab-ci.yml":
			s.data = f.Data
		}
		path := filepath.Join(s.dir, f.Name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, f.Data, 0o600))
		s.files = append(s.files, f.Name)
	}
	return s
}

func (s *shape) parse(kind string) (*pipeline.Pipeline, error) {
	o := optionsOf(kind)
	o.Dir, o.Files = s.dir, func() []string { return s.files }
	if dir := s.want["include-dir"]; dir != "" {
		o.IncludeDir = filepath.Join(s.dir, dir)
	}
	o.Variables["CI_PROJECT_NAMESPACE"] = "elsewhere"
	return o.Parse(".gitlab-ci.yml", s.data)
}

// jobs returns what is in the pipeline, as want has it.
func (s *shape) jobs(kind string) string {
	p, err := s.parse(kind)
	if err != nil {
		return "error: " + err.(*pipeline.Errors).Problems[0].Text
	}
	var all []string
	for _, j := range p.Jobs {
		name := j.Name
		if j.When != pipeline.OnSuccess {
			name += "/" + string(j.When)
		}
		if j.AllowFailure.All {
			name += "/may fail"
		}
		all = append(all, name)
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

func (s *shape) warnings() string {
	p, err := s.parse("branch")
	if err != nil || p == nil {
		return "error"
	}
	var all []string
	for _, w := range p.Warnings {
		if !slices.Contains(all, w.Keyword) {
			all = append(all, w.Keyword)
		}
	}
	return strings.Join(all, ", ")
}
