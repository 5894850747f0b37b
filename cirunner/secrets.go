//go:build unix

package main

import (
	"io"
	"os"

	"github.com/ambit-go/ambit/cirunner/internal/mask"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
)

// Secrets go out in four ways, each of which hides them: what is known of jobs by the board, output and logs by the
// job's own writers, errors in command, and all other text by the writer of masking.

// secrets returns the values that are not to be seen: those of project variables that are masked, whatever job has
// them, and those that variables of -mask have outside of the file.
func (c *choice) secrets() []string {
	all := c.project.Secrets()
	for _, name := range c.masked {
		all = append(append(all, pipeline.Secrets(c.set[name])...), pipeline.Secrets(os.Getenv(name))...)
	}
	return all
}

// masking returns a writer for texts in which secrets are hidden.
func (c *choice) masking(out io.Writer) io.Writer { return mask.Whole(out, c.secrets()) }
