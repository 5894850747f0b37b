//go:build unix

package runner

import (
	"io"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/mask"
)

// masked returns a writer for the output of a shell: one that hides the values
// that the variables of Config.Mask have in the shell's environment. flush passes
// on what it has held back.
func (a *attempt) masked(out io.Writer, environ []string) (masked io.Writer, flush func() error) {
	var secrets []string
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if !slices.Contains(a.r.Mask, name) || value == "" {
			continue
		}
		if len(value) < mask.MinLen {
			a.log.Printf("cirunner: the value of %s is too short to be masked: it has less than %d bytes", name, mask.MinLen)
		}
		secrets = append(secrets, value)
	}
	if len(secrets) == 0 {
		return out, func() error { return nil }
	}
	w := mask.New(out, secrets)
	return w, w.Flush
}
