package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"time"

	"github.com/ambit-go/ambit/cirunner/internal/board"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
)

type suites struct {
	XMLName  xml.Name `xml:"testsuites"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Errors   int      `xml:"errors,attr"`
	Skipped  int      `xml:"skipped,attr"`
	Time     string   `xml:"time,attr"`
	Suites   []suite  `xml:"testsuite"`
}

type suite struct {
	Name     string  `xml:"name,attr"`
	Tests    int     `xml:"tests,attr"`
	Failures int     `xml:"failures,attr"`
	Errors   int     `xml:"errors,attr"`
	Skipped  int     `xml:"skipped,attr"`
	Time     string  `xml:"time,attr"`
	Cases    []tcase `xml:"testcase"`
}

type tcase struct {
	Name    string   `xml:"name,attr"`
	Class   string   `xml:"classname,attr"`
	Time    string   `xml:"time,attr"`
	Failure *problem `xml:"failure"`
	Error   *problem `xml:"error"`
	Skipped *problem `xml:"skipped"`
	Out     string   `xml:"system-out,omitempty"`
}

type problem struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
}

// WriteJUnit writes a JUnit file, in which a stage is a suite and a job a case. A
// file is there completely or not at all, whoever reads it meanwhile; a pipe or a
// device is written to, and a link is followed.
func WriteJUnit(path, name string, jobs []board.Job, took time.Duration) error {
	data, err := xml.MarshalIndent(junit(name, jobs, took), "", "  ")
	if err != nil {
		return err
	}
	return write(path, func(w io.Writer) error {
		_, err := w.Write(append([]byte(xml.Header), append(data, '\n')...))
		return err
	})
}

func junit(name string, jobs []board.Job, took time.Duration) suites {
	all := suites{Name: name, Time: seconds(took)}
	times := map[string]time.Duration{}
	place := map[string]int{}
	for _, j := range jobs {
		k, ok := place[j.Stage]
		if !ok {
			k = len(all.Suites)
			place[j.Stage] = k
			all.Suites = append(all.Suites, suite{Name: j.Stage})
		}
		s := &all.Suites[k]
		c := jobCase(j)
		s.Cases = append(s.Cases, c)
		s.Tests++
		s.Failures += one(c.Failure)
		s.Errors += one(c.Error)
		s.Skipped += one(c.Skipped)
		times[j.Stage] += j.Took(j.Begin)
		s.Time = seconds(times[j.Stage])
	}
	for _, s := range all.Suites {
		all.Tests += s.Tests
		all.Failures += s.Failures
		all.Errors += s.Errors
		all.Skipped += s.Skipped
	}
	return all
}

// jobCase is a job as a case: a failure is a script's, an error the runner's or
// a person's, and a failure that is allowed is skipped, so that nobody fails
// because of it.
func jobCase(j board.Job) tcase {
	c := tcase{Name: j.Name, Class: j.Stage, Time: seconds(j.Took(j.Begin))}
	p := &problem{Message: firstLine(j.Why), Type: string(j.Cause)}
	switch j.State {
	case plan.Succeeded:
	case plan.Failed:
		if j.Cause == pipeline.SystemFailure {
			c.Error = p
		} else {
			c.Failure = p
		}
	case plan.Warned:
		p.Message, p.Type = "failed, which is allowed: "+p.Message, ""
		c.Skipped = p
	case plan.Canceled:
		if j.Attempt > 0 {
			c.Error = p
			break
		}
		fallthrough
	default:
		p.Type = ""
		c.Skipped = p
	}
	if j.Attempt > 1 {
		c.Out = fmt.Sprintf("%d attempts", j.Attempt)
	}
	return c
}

func one(p *problem) int {
	if p == nil {
		return 0
	}
	return 1
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
