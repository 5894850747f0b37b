//go:build unix

package proc

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async/asynctest"
)

// The system says the same of a directory, a program and an interpreter that are not
// there, and names the program each time.
func TestTheErrorOfACommandThatCannotBeStartedNamesWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	none, file, script := filepath.Join(dir, "none"), filepath.Join(dir, "file"), filepath.Join(dir, "script")
	require.NoError(t, os.WriteFile(file, []byte("text\n"), 0o600))
	require.NoError(t, os.WriteFile(script, []byte("#!"+none+"\n"), 0o700))
	for name, tc := range map[string]struct {
		command Command
		text    string
		is      error
	}{
		"no arguments":              {Command{}, "proc: no command: Args is empty: set it to the program and its arguments", nil},
		"no arguments, a name":      {Command{Name: "job"}, "job: no command: Args is empty: set it to the program and its arguments", nil},
		"an empty program":          {Command{Args: []string{"", "x"}}, "proc: no command: Args[0] is empty: set it to the program", nil},
		"no program":                {Command{Args: []string{none}}, "none: fork/exec " + none + ": no such file or directory", os.ErrNotExist},
		"no program in PATH":        {Command{Args: []string{"no-such-program"}}, `no-such-program: exec: "no-such-program": executable file not found in $PATH`, nil},
		"no directory":              {Command{Args: []string{"/bin/sh"}, Dir: none}, "sh: working directory: chdir " + none + ": no such file or directory", os.ErrNotExist},
		"neither":                   {Command{Args: []string{none}, Dir: none}, "none: working directory: chdir " + none + ": no such file or directory", os.ErrNotExist},
		"a file as directory":       {Command{Args: []string{"/bin/sh"}, Dir: file}, "sh: working directory: chdir " + file + ": not a directory", syscall.ENOTDIR},
		"a file that is no program": {Command{Args: []string{file}}, "file: fork/exec " + file + ": permission denied", os.ErrPermission},
		"no interpreter": {Command{Args: []string{script}},
			"script: fork/exec " + script + ": no such file or directory: the program is there, its interpreter is not: a script names that in its first line", os.ErrNotExist},
		"no interpreter, beside": {Command{Args: []string{"./script"}, Dir: dir},
			"script: fork/exec ./script: no such file or directory: the program is there, its interpreter is not: a script names that in its first line", os.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := Run(asynctest.Context(t), tc.command)
			require.EqualError(t, err, tc.text)
			if tc.is != nil {
				assert.ErrorIs(t, err, tc.is)
			}
			assert.Equal(t, Result{Code: -1}, result)
		})
	}
}
