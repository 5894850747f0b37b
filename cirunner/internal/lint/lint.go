// Package lint is what cirunner lint, list and -dry-run print.
package lint

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/exit"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/parse"
)

// Run checks pipeline files, all of them whatever the first ones are like. For
// a file that is wrong it prints the lines of [pipeline.Errors.Detail] to w, for
// one that is right its warnings and what is in it. options says how a file is
// read. It returns an [exit.Error] if there is no file, or
// one was wrong or could not be read, and otherwise what went wrong with w.
func Run(files []string, options func(file string) parse.Options, w io.Writer) error {
	if len(files) == 0 {
		return exit.Usagef("lint needs the names of pipeline files, such as .gitlab-ci.yml")
	}
	wrong := 0
	for _, file := range files {
		text, err := check(file, options(file))
		if err != nil {
			wrong++
			text = err.Error()
		}
		if _, err := fmt.Fprintln(w, text); err != nil {
			return fmt.Errorf("cannot write: %w", err)
		}
	}
	if wrong > 0 {
		return &exit.Error{Err: fmt.Errorf("%d of %s: no pipeline", wrong, count(len(files), "file"))}
	}
	return nil
}

// check returns a summary of a file, or an error with all that is to be said.
func check(file string, options parse.Options) (string, error) {
	p, err := options.ParseFile(file)
	var found *pipeline.Errors
	switch {
	case errors.As(err, &found):
		return "", errors.New(found.Detail())
	case err != nil:
		return "", err
	}
	var lines []string
	for _, w := range p.Warnings {
		lines = append(lines, w.String())
	}
	return strings.Join(append(lines, summary(p)), "\n"), nil
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
	if p.Why != "" {
		parts = append(parts, p.Why)
	}
	return fmt.Sprintf("%s: ok: %s", p.File, strings.Join(parts, ", "))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
