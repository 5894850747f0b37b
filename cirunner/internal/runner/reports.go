//go:build unix

package runner

import (
	"maps"
	"os"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/board"
	"github.com/ambit-go/ambit/cirunner/internal/jobreport"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
)

// readReports reads what the job has reported in files, whatever has become of its script.
// A report that cannot be read is told, and fails nothing.
func (a *attempt) readReports() {
	a.readDotenv()
	a.readTests()
}

// readDotenv keeps the variables that the job has for others.
func (a *attempt) readDotenv() {
	variables := map[string]string{}
	a.read(a.job.Artifacts.Dotenv, func(name string, file *os.File) {
		found, wrong, err := jobreport.Dotenv(file, pipeline.IsVariable)
		for _, w := range wrong {
			a.note("cirunner: dotenv: %s: %s; GitLab would refuse the file", name, w)
		}
		if err != nil {
			a.note("cirunner: dotenv: %s: %v", name, err)
		}
		maps.Copy(variables, found)
	})
	a.r.mu.Lock()
	defer a.r.mu.Unlock()
	a.r.dotenv[a.i] = variables
}

// takeVariables takes the variables that the jobs have reported whose artifacts this one
// gets.
func (a *attempt) takeVariables() {
	a.given = map[string]string{}
	for _, from := range a.job.Fetch {
		a.r.mu.Lock()
		variables := a.r.dotenv[from.Index]
		a.r.mu.Unlock()
		for name, value := range variables {
			if !a.fixed(name) {
				a.given[name] = strings.ReplaceAll(value, "$", "$$") // as it is
			}
		}
		if len(variables) > 0 {
			a.note("cirunner: %s from %q", count(len(variables), "variable"), from.Name)
		}
	}
}

// readTests puts the results of the job's tests on the board.
func (a *attempt) readTests() {
	var tests jobreport.Tests
	a.read(a.job.Artifacts.JUnit, func(name string, file *os.File) {
		if err := tests.Add(file, a.hide); err != nil {
			a.note("cirunner: junit: %s: %v", name, err)
		}
	})
	if tests.Total > 0 {
		a.note("cirunner: junit: %s, %d failed, %d skipped", count(tests.Total, "test"), tests.Failed, tests.Skipped)
		a.r.Board.Change(a.i, func(j *board.Job) { j.Tests = &tests })
	}
}

// read calls f with the files of reports.
func (a *attempt) read(patterns []string, f func(name string, file *os.File)) {
	if len(patterns) == 0 {
		return
	}
	expanded, err := a.expandAll(patterns)
	if err != nil {
		return // the script has said so
	}
	missing, err := a.r.Work.Read(a.slug(), expanded, f)
	for _, m := range missing {
		a.note("cirunner: reports: nothing in the job's directory matches %s", m)
	}
	if err != nil {
		a.note("cirunner: reports: %v", err)
	}
}

// lookForCoverage looks at a line of output. The last one that tells of coverage counts.
func (a *attempt) lookForCoverage(line []byte) {
	if a.job.Coverage == nil {
		return
	}
	if found := jobreport.Coverage(a.job.Coverage, board.Clean(line)); found != "" {
		a.r.Board.Change(a.i, func(j *board.Job) { j.Coverage = found })
	}
}
