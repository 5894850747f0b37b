package lint

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ambit-go/ambit/cirunner/internal/exit"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/parse"
	"github.com/stretchr/testify/require"
)

func TestRightFilesAreSummedUp(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "a.yml", "job: {script: make}\n")
	write(t, "b.yml", "a: {script: make, stage: build, parallel: 2}\nb: {script: make, services: [{name: s, command: serve}]}\n")
	var out strings.Builder
	require.NoError(t, Run([]string{"a.yml", "b.yml"}, always, &out))
	require.Equal(t, "a.yml: ok: 1 job in 1 stage\nb.yml: ok: 3 jobs in 2 stages, 1 service\n", out.String())
}

func TestEveryFileIsChecked(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "wrong.yml", "job:\n  scritp: make\n  retry: 9\n")
	write(t, "right.yml", "job: {script: make}\n")
	var out strings.Builder
	err := Run([]string{"wrong.yml", "nothing.yml", ".", "right.yml"}, always, &out)
	require.Equal(t, `wrong.yml:2:3: there is no keyword "scritp" in a job; did you mean "script"?
	  scritp: make
	  ^
wrong.yml:3:10: retry should be a number from 0 to 2, not the number 9
	  retry: 9
	         ^
nothing.yml: cannot read it: no such file or directory
.: cannot read it: is a directory
right.yml: ok: 1 job in 1 stage
`, out.String())
	require.ErrorAs(t, err, new(*exit.Error))
	require.EqualError(t, err, "3 of 4 files: no pipeline")
}

func TestWithoutFilesThereIsNothingToDo(t *testing.T) {
	require.ErrorAs(t, Run(nil, always, &strings.Builder{}), new(*exit.Error))
}

func TestAnOutputThatCannotBeWrittenIsReported(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "a.yml", "job: {script: make}\n")
	require.ErrorIs(t, Run([]string{"a.yml"}, always, broken{}), errBroken)
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func write(t *testing.T, name, text string) {
	require.NoError(t, os.WriteFile(filepath.Clean(name), []byte(text), 0o644))
}

func always(string) parse.Options { return parse.Options{} }
