package parse

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeProjects are directories by project and ref.
type fakeProjects map[string]string

func (f fakeProjects) Checkout(project, ref string) (string, error) {
	if dir := f[project+"@"+ref]; dir != "" {
		return dir, nil
	}
	return "", errors.New("no " + project + "@" + ref)
}

func (f fakeProjects) Version(_, version string) (string, error) {
	if version == "~latest" {
		return "2.0.0", nil
	}
	return version, nil
}

func directory(t *testing.T, files map[string]string) string {
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

// A copy is taken before the git server is asked; local includes of a file are those of
// its own project.
func TestFilesOfOtherProjects(t *testing.T) {
	o := optionsOf("main")
	o.Dir = t.TempDir()
	o.Projects = fakeProjects{
		"group/ci@v1": directory(t, map[string]string{"a.yml": "include: /ci/*.yml\na: {script: x}", "ci/b.yml": "b: {script: x}", "wrong.yml": "w: {scirpt: x}"}),
		"group/ci@":   directory(t, map[string]string{"a.yml": "head: {script: x}"}),
		"comp/one@2.0.0": directory(t, map[string]string{"templates/lint.yml": "spec: {inputs: {n: ~}}\n---\n$[[ inputs.n ]]: {script: x}",
			"templates/big/template.yml": "big: {script: x}"}),
	}
	o.IncludeDir = directory(t, map[string]string{"other/ci/a.yml": "copied: {script: x}", "host.example/comp/two/templates/t.yml": "component copy: {script: x}"})
	parse := func(include string) ([]string, error) {
		p, err := o.Parse("f.yml", []byte("include: "+include+"\nown: {script: x}"))
		if err != nil {
			return nil, err
		}
		return names(p.Jobs), nil
	}
	for include, want := range map[string][]string{
		"{project: group/ci, ref: v1, file: a.yml}":                              {"b", "a", "own"},
		"{project: group/ci, file: [/a.yml]}":                                    {"head", "own"},
		"{project: other/ci, file: a.yml}":                                       {"copied", "own"},
		"{component: host.example/comp/one/lint@~latest, inputs: {n: with}}":     {"with", "own"},
		"{component: host.example/comp/one/big@2.0.0}":                           {"big", "own"},
		"{component: host.example/comp/two/t@1}":                                 {"component copy", "own"},
		"[{project: group/ci, ref: v1, file: ci/b.yml, rules: [{if: $NOBODY}]}]": {"own"},
	} {
		got, err := parse(include)
		require.NoError(t, err, include)
		require.Equal(t, want, got, include)
	}
	for include, want := range map[string]string{
		"{project: group/ci, ref: v1, file: none.yml}":        "include:project: group/ci@v1 has no file none.yml",
		"{project: group/ci, ref: v2, file: a.yml}":           "include:project: no group/ci@v2",
		"{project: group/ci, ref: v1, file: wrong.yml}":       `group/ci@v1:wrong.yml:1:5: there is no keyword "scirpt" in a job`,
		"{component: host.example/comp/one/none@2.0.0}":       "has no file templates/none.yml or templates/none/template.yml",
		"{local: none.yml, integrity: sha256-x}":              "include:integrity is for remote",
		"{project: group/ci, ref: v1, file: ../../etc/a.yml}": "has no file ../../etc/a.yml",
	} {
		_, err := parse(include)
		require.ErrorContains(t, err, want, include)
	}
	o.Projects = nil
	_, err := parse("{component: host.example/comp/one/lint@1}")
	require.ErrorContains(t, err, "there is no copy at "+o.IncludeDir+"/host.example/comp/one/lint.yml")
	o.IncludeDir = ""
	_, err = parse("{project: group/ci, file: a.yml}")
	require.ErrorContains(t, err, "put a copy at DIR/group/ci/a.yml and say -include-dir DIR, or name the git server with -include-git")
}

func TestTheHashOfARemoteFile(t *testing.T) {
	o := Options{IncludeDir: directory(t, map[string]string{"host.example/a.yml": "a: {script: x}"})}
	_, err := o.Parse("f.yml", []byte("include: {remote: https://host.example/a.yml, integrity: sha256-wrong}"))
	require.ErrorContains(t, err, "is another file: it has sha256-")
	_, hash, _ := strings.Cut(err.Error(), "it has ")
	_, err = o.Parse("f.yml", []byte("include: {remote: https://host.example/a.yml, integrity: "+hash+"}"))
	require.NoError(t, err)
}
