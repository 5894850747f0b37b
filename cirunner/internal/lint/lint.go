// Package lint is what cirunner lint does.
package lint

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/cli"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
)

// Run checks pipeline files, all of them whatever the first ones are like. For
// a file that is wrong it prints the lines of [pipeline.Errors.Detail] to w, for
// one that is right what is in it. It returns a [cli.ExitError] with
// cli.StatusFailed and no text of its own if a file was wrong or could not be
// read, a [cli.UsageError] when there is no file, and otherwise what went wrong
// with w.
func Run(files []string, w io.Writer) error {
	if len(files) == 0 {
		return cli.Usagef("lint needs the names of pipeline files, such as .gitlab-ci.yml")
	}
	out := cli.Out{W: w}
	wrong := false
	for _, file := range files {
		text, err := check(file)
		wrong = wrong || err != nil
		if err != nil {
			text = err.Error()
		}
		out.Printf("%s\n", text)
	}
	if err := out.Err(); err != nil {
		return err
	}
	if wrong {
		return &cli.ExitError{Code: cli.StatusUsage}
	}
	return nil
}

// check returns a summary of a file, or an error with all that is to be said.
func check(file string) (string, error) {
	p, err := pipeline.ParseFile(file)
	var found *pipeline.Errors
	switch {
	case errors.As(err, &found):
		return "", errors.New(found.Detail())
	case err != nil:
		return "", err
	}
	return summary(p), nil
}

func summary(p *pipeline.Pipeline) string {
	stages := make(map[string]bool)
	services := 0
	for _, job := range p.Jobs {
		stages[job.Stage] = true
		services += len(job.Services)
	}
	parts := []string{count(len(p.Jobs), "job") + " in " + count(len(stages), "stage")}
	if services > 0 {
		parts = append(parts, count(services, "service"))
	}
	return fmt.Sprintf("%s: ok: %s", p.File, strings.Join(parts, ", "))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
