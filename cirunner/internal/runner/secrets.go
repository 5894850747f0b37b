//go:build unix

package runner

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/mask"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
)

// hideSecrets has the board hide the secrets of jobs of which no attempt has begun.
func (r *Runner) hideSecrets(jobs []*pipeline.Job) {
	for _, j := range jobs {
		(&attempt{r: r, i: j.Index, job: j}).findSecrets()
	}
}

// findSecrets looks for the values that are to be hidden in what is said of the job, also on the board.
func (a *attempt) findSecrets() {
	environ, err := a.environ(a.job.Variables, nil)
	if err != nil {
		environ = nil // the script will say so
	}
	a.secrets = a.secretsOf(environ)
	a.r.Board.Hide(a.i, a.secrets)
}

// tellShortSecrets tells which values are too short to be hidden.
func (a *attempt) tellShortSecrets() {
	environ, _ := a.environ(a.job.Variables, nil)
	for _, name := range a.r.Mask {
		i := slices.IndexFunc(environ, func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
		if i < 0 {
			continue
		}
		if n := len(environ[i]) - len(name) - 1; n > 0 && n < mask.MinLen {
			a.note("cirunner: the value of %s is too short to be masked: it has less than %d bytes", name, mask.MinLen)
		}
	}
}

// secretsOf returns the values that the variables of Config.Mask have in an environment,
// those of variables that are masked, and those that any job may have. A job of a child
// pipeline has those of the job that starts it, too, whose values it may have been given.
func (a *attempt) secretsOf(environ []string) []string {
	secrets := slices.Clone(a.r.Secrets)
	if parent := a.job.Parent; parent != nil {
		above := &attempt{r: a.r, i: parent.Index, job: parent}
		inherited, _ := above.environ(parent.Variables, nil)
		secrets = append(secrets, above.secretsOf(inherited)...)
	}
	for _, v := range a.job.Variables {
		secrets = append(secrets, v.Secrets()...)
	}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if a.masks(name) {
			secrets = append(secrets, pipeline.Secrets(value)...)
		}
	}
	return secrets
}

// masks reports whether the value of a variable is to be hidden, as it is in an environment.
func (a *attempt) masks(name string) bool {
	hidden := func(v pipeline.Variable) bool { return v.Name == name && v.Masked && !v.File }
	return slices.Contains(a.r.Mask, name) || slices.ContainsFunc(a.job.Variables, hidden)
}

// masked returns a writer for the output of a shell, which hides the secrets of its
// environment. flush passes on what it has held back. Without out there is no writer.
func (a *attempt) masked(out io.Writer, environ []string) (masked io.Writer, flush func() error) {
	secrets := a.secretsOf(environ)
	if len(secrets) == 0 || out == nil {
		return out, func() error { return nil }
	}
	w := mask.New(out, secrets)
	return w, w.Flush
}

// note writes a line of the runner's own into the log. Names of files and causes may
// have secrets in them.
func (a *attempt) note(format string, args ...any) {
	a.log.Printf("%s", a.hide(fmt.Sprintf(format, args...)))
}

// hide returns a text without the secrets of the job.
func (a *attempt) hide(text string) string { return mask.Text(text, a.secrets) }
