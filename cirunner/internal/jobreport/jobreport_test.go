package jobreport

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDotenv(t *testing.T) {
	valid := regexp.MustCompile(`^[A-Z_]+$`).MatchString
	got, wrong, err := Dotenv(strings.NewReader("A=1\n B = two words = x \nC=\"$A\"\n\n# comment\na-b=1\nEMPTY=\r\nA=2\n"), valid)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"A": "2", "B": "two words = x", "C": `"$A"`, "EMPTY": ""}, got)
	assert.Equal(t, []string{"line 4 should be NAME=value", "line 5 should be NAME=value", "line 6 should be NAME=value"}, wrong)
	_, _, err = Dotenv(strings.NewReader("A="+strings.Repeat("x", maxDotenv)), valid)
	assert.Error(t, err)
}

func TestCoverage(t *testing.T) {
	for _, tt := range []struct{ of, line, want string }{
		{`total:\s+\(statements\)\s+(\d+.\d+%)`, "total:\t(statements)\t87.5%", "87.5"},
		{`\d+\.\d+% covered`, "10.0% covered, 20.0% covered", "20.0"},
		{`Coverage: \d+`, "Coverage: 91 of 100", "91"},
		{`Coverage: \d+`, "nothing", ""},
		{`TOTAL.*?(\d+)%?$`, "TOTAL 1 2 3 100%", "100"},
	} {
		assert.Equal(t, tt.want, Coverage(regexp.MustCompile(tt.of), tt.line), "%+v", tt)
	}
}

func asItIs(s string) string { return s }

func TestJUnit(t *testing.T) {
	var all Tests
	require.NoError(t, all.Add(strings.NewReader(`<?xml version="1.0" encoding="ISO-8859-1"?>
<testsuites><testsuite><testsuite>
  <testcase name="good" classname="p"/>
  <testcase name="bad" classname="p"><failure message="want 1&#10;got 2">trace</failure></testcase>
</testsuite></testsuite></testsuites>`), asItIs))
	require.NoError(t, all.Add(strings.NewReader(`<testsuite>
  <testcase name="crash"><error>panic: x
at y</error><failure/></testcase><testcase name="not"><skipped/></testcase></testsuite>`), asItIs))
	assert.Equal(t, Tests{4, 2, 1, []Failure{{"p bad", "want 1"}, {"crash", "panic: x"}}}, all)
	assert.Error(t, all.Add(strings.NewReader("<testsuite><testcase name='x'/><"), asItIs))
	assert.Equal(t, 5, all.Total, "what was read counts")

	var many strings.Builder
	for i := range 200 {
		fmt.Fprintf(&many, "<testcase name='%d'><failure message='%s'/></testcase>", i, strings.Repeat("ä", 1000))
	}
	all = Tests{}
	require.NoError(t, all.Add(strings.NewReader("<testsuite>"+many.String()+"</testsuite>"), asItIs))
	assert.Equal(t, 200, all.Failed)
	assert.Len(t, all.Failures, maxFailures)
	assert.LessOrEqual(t, len(all.Failures[0].Message), maxMessage+len("…"))
}
