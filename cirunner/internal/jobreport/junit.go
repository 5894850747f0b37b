package jobreport

import (
	"cmp"
	"encoding/xml"
	"errors"
	"io"
	"strings"
)

// maxFailures is how many failures are kept of the files of a job, and maxMessage how much
// of what each says, in bytes.
const (
	maxFailures = 50
	maxMessage  = 500
)

// Tests are the results of the tests of a job. A result is not changed once it is shown.
type Tests struct {
	Total, Failed, Skipped int
	Failures               []Failure // the first of those that have failed
}

// A Failure is a test that has failed.
type Failure struct{ Name, Message string }

// A testcase is a test in a JUnit file.
type testcase struct {
	Name    string   `xml:"name,attr"`
	Class   string   `xml:"classname,attr"`
	Failure []result `xml:"failure"`
	Error   []result `xml:"error"`
	Skipped *result  `xml:"skipped"`
}

type result struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// Add adds the tests of a JUnit file, however its suites are nested. Tests that it has read before
// an error count. At most one test at a time is in memory. Names and messages are passed through hide before they
// are cut.
func (t *Tests) Add(r io.Reader, hide func(string) string) error {
	d := xml.NewDecoder(r)
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // names may be wrong, numbers are not
	for {
		token, err := d.Token()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "testcase" {
			continue
		}
		var c testcase
		if err := d.DecodeElement(&c, &start); err != nil {
			return err
		}
		t.add(c, hide)
	}
}

func (t *Tests) add(c testcase, hide func(string) string) {
	t.Total++
	bad := append(c.Error, c.Failure...)
	switch {
	case len(bad) > 0:
		t.Failed++
		if len(t.Failures) < maxFailures {
			t.Failures = append(t.Failures, Failure{hide(fullName(c)), message(bad[0], hide)})
		}
	case c.Skipped != nil:
		t.Skipped++
	}
}

func fullName(c testcase) string {
	if c.Class == "" || strings.HasPrefix(c.Name, c.Class) {
		return c.Name
	}
	return c.Class + " " + c.Name
}

// message is what a failure says, in a line.
func message(r result, hide func(string) string) string {
	text := hide(strings.TrimSpace(cmp.Or(r.Message, r.Text)))
	text, _, _ = strings.Cut(text, "\n")
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	return text
}
