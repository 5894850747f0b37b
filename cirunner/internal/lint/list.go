package lint

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
)

// List prints a line for each job of the file: whether it would run, and why or
// why not. asked are the manual jobs that were asked for.
func List(p *pipeline.Pipeline, asked map[string]bool, w io.Writer) error {
	rows := [][]string{{"STAGE", "JOB", "RUNS", "WHY"}}
	for _, stage := range stagesOf(p) {
		for _, j := range p.Jobs {
			if j.Stage == stage {
				rows = append(rows, []string{stage, j.Name, runs(j, asked), j.Why})
			}
		}
		for _, left := range p.Left {
			if left.Stage == stage {
				rows = append(rows, []string{stage, left.Name, "no", left.Why})
			}
		}
	}
	text := table(rows)
	if p.Why != "" {
		text += "\nthere is no pipeline: " + p.Why + "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// stagesOf returns the stages of the jobs that run and of those that do not.
func stagesOf(p *pipeline.Pipeline) []string {
	stages := append([]string(nil), p.Stages...)
	known := map[string]bool{}
	for _, s := range stages {
		known[s] = true
	}
	for _, left := range p.Left {
		if !known[left.Stage] {
			known[left.Stage] = true
			stages = append(stages, left.Stage)
		}
	}
	return stages
}

// runs says when a job of the pipeline runs.
func runs(j *pipeline.Job, asked map[string]bool) string {
	switch {
	case j.When == pipeline.Manual && !asked[j.Name] && !asked[j.Key]:
		return "manual"
	case j.When == pipeline.Delayed:
		return "after " + j.StartIn.String()
	case j.When == pipeline.OnFailure:
		return "on failure"
	case j.When == pipeline.Always:
		return "always"
	}
	return "yes"
}

// DryRun prints what a run would do, without doing it: the jobs in the order of
// the stages, what each waits for, and its commands.
func DryRun(p *pipeline.Pipeline, asked map[string]bool, w io.Writer) error {
	var b strings.Builder
	for _, stage := range p.Stages {
		for _, j := range p.Jobs {
			if j.Stage == stage {
				dryJob(&b, j, runs(j, asked))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func dryJob(b *strings.Builder, j *pipeline.Job, runs string) {
	fmt.Fprintf(b, "%s: %s (%s)\n", j.Stage, j.Name, runs)
	if j.Needs != nil {
		var names []string
		for _, n := range j.Needs {
			names = append(names, n.Job.Name)
		}
		fmt.Fprintf(b, "  needs: [%s]\n", strings.Join(names, ", "))
	}
	for _, from := range j.Fetch {
		fmt.Fprintf(b, "  artifacts of: %s\n", from.Name)
	}
	if j.Made != nil {
		for _, f := range j.Made.Files {
			fmt.Fprintf(b, "  pipeline: %s of %s\n", f.Path, f.From.Name)
		}
	}
	for _, s := range j.Services {
		fmt.Fprintf(b, "  service: %s\n", s.Name)
	}
	for _, part := range []struct {
		name     string
		commands []string
	}{{"before_script", j.Before}, {"script", j.Script}, {"after_script", j.After}} {
		if len(part.commands) == 0 {
			continue
		}
		fmt.Fprintf(b, "  %s:\n", part.name)
		for _, c := range part.commands {
			fmt.Fprintf(b, "    %s\n", strings.ReplaceAll(strings.TrimRight(c, "\n"), "\n", "\n    "))
		}
	}
}

// table aligns rows.
func table(rows [][]string) string {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for k, cell := range row {
			width[k] = max(width[k], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for k, cell := range row {
			line.WriteString(cell + strings.Repeat(" ", width[k]-utf8.RuneCountInString(cell)+2))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}
