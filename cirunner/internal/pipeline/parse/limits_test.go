package parse

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
	"github.com/stretchr/testify/require"
)

// TestWhatIsNoPipelineIsRefused holds the first line of what is said of files
// that are no pipeline at all.
func TestWhatIsNoPipelineIsRefused(t *testing.T) {
	repeat := strings.Repeat
	for _, c := range []struct{ name, data, want string }{
		{"empty", "", "1:1: the file has no job"},
		{"comments", "# nothing\n---\n# at all\n", "1:1: the file has no job"},
		{"only hidden jobs", ".a:\n  script: make\n", "1:1: the file has no job"},
		{"a list", "- a\n- b\n", "1:1: a pipeline should be a mapping of names to jobs, not a list"},
		{"a text", "hello\n", `1:1: a pipeline should be a mapping of names to jobs, not "hello"`},
		{"a tab", "a:\n\tscript: make\n", "2:1: not YAML: while scanning for the next token, found character that cannot start any token: indent with spaces, not tabs"},
		{"a colon", "a:\n  script: echo x: y\n", `2:17: not YAML: mapping values are not allowed in this context: a text with ": " in it needs quotes`},
		{"an open bracket", "a: [b\n", "2:1: not YAML: while parsing a flow sequence, did not find expected ',' or ']'"},
		{"an open quote", "a: 'b\n", "2:1: not YAML: while scanning a quoted scalar, found unexpected end of stream: a quote or a bracket above is not closed"},
		{"indentation", "a:\n  - b\n - c\n", "3:2: not YAML: while parsing a block mapping, did not find expected key: look at the indentation"},
		{"an unknown anchor", "a:\n  script: *b\n", "2:11: not YAML: unknown anchor 'b' referenced"},
		{"a long name", "a: *" + repeat("b", 5000), "1:4: not YAML: unknown anchor 'bbb"},
		{"two documents", "a: {script: b}\n---\nc: {script: d}\n", "2:1: a second document begins here"},
		{"a third document", "a: {script: b}\n---\n# empty\n---\nc: {script: d}\n", "4:1: a second document begins here"},
		{"a second document that is not YAML", "a: {script: b}\n---\nc: [\n", "4:1: not YAML"},
		{"a program", "\x7fELF\x02\x01\x01\x00", "1:1: a control character (U+007F) cannot be in a pipeline file"},
		{"Latin-1", "a:\n  script: echo \xfcber\n", "2:16: this is not UTF-8: the byte 0xfc"},
		{"a line end of Unicode", "a:\n  # \u2028 here\n", `2:5: U+2028 ends a line for YAML, but for no editor: take it out, or write "\u2028" in double quotes`},
		{"UTF-16", "\xff\xfea\x00", "1:1: this is not UTF-8: the byte 0xff"},
		{"directives", repeat("%TAG !a! b\n", 20), "11:1: too many YAML directives"},
		{"10 MB", repeat("garbage ", 10<<17), "1:1: the file has more than 262144 bytes"},
		{"10 MB of zeros", repeat("\x00", 10<<20), "1:1: the file has more than 262144 bytes"},
		{"deep lists", "a: " + repeat("[", 5000), "1:104: not YAML: while increasing flow level, exceeded max depth of 100"},
		{"deep mappings", repeat("{a: ", 5000), "1:401: not YAML: while increasing flow level, exceeded max depth of 100"},
		{"deep blocks", repeat("- ", 5000) + "a", "1:201: not YAML: while increasing indent level, exceeded max depth of 100"},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := wrong(t, c.data)
			require.True(t, strings.HasPrefix(found.Error(), "f.yml:"+c.want), "%s", found)
			checkErrors(t, found, c.data)
		})
	}
}

func wrong(t *testing.T, data string) *pipeline.Errors {
	p, err := Options{Strict: true}.Parse("f.yml", []byte(data))
	require.Nil(t, p)
	var found *pipeline.Errors
	require.ErrorAs(t, err, &found)
	return found
}

// TestSmallFilesCannotGrowLarge parses files of at most 256 KiB that stand for
// very much more. The return of Parse says that it took no exponential time; what it
// allocates is bounded by number.
func TestSmallFilesCannotGrowLarge(t *testing.T) {
	for _, c := range []struct {
		name, data, want string
	}{
		{"a billion laughs in a script", laughs("[*l%d, *l%d, *l%d, *l%d]", "echo ha") + "job: {script: *l12}\n",
			"script has"},
		{"a billion laughs in merge keys", laughs("{<<: [*l%[1]d, *l%[1]d], a%[2]d: *l%[1]d, b%[2]d: *l%[1]d}", "{x: y}") + "job: *l12\n",
			"no keyword"},
		{"a billion laughs in variables", laughs("[*l%d, *l%d]", "x") + "variables: {A: *l12}\njob: {script: x}\n",
			"A should be a text"},
		{"a billion laughs in a script without commands", laughs("["+strings.Repeat("*l%[1]d, ", 30)+"]", "[]") + "job: {script: *l9}\n",
			"too many lists in lists"},
		{"merging a large mapping often", large("- &large {%s}", "{<<: *large}"), "grows too large"},
		{"extending a large mapping often", many(400, ".m: {"+keysOf(5000)+"}\n", "j%d: {extends: .m}\n"), "grows too large"},
		{"extending deeply", ".x: {variables: &v {" + keysOf(6000) + "}}\n" + many(60, "", "j%d: {extends: .x, variables: {A: x}}\n"),
			"grows too large"},
		{"a chain of aliases", chainOf(3000), "lists in lists"},
		{"references to references", many(60, "s0: {script: x}\n", "s%[2]d: {script: [!reference [s%[1]d, script], !reference [s%[1]d, script]]}\n"),
			"script has"},
		{"a chain of references", many(300, "", "s%[1]d: {script: [!reference [s%[2]d, script]]}\n") + "s300: {script: x}\n",
			"more than 10 references deep"},
		{"a script of many lines for many jobs", ".s: {script: [" + strings.Repeat("a,", 6000) + "]}\n" + many(400, "", "j%d: {extends: .s}\n"),
			"script grows too long"},
		{"many jobs", many(3000, "", "j%d: {script: x}\n"), "more than 500 jobs"},
		{"many parts", many(2000, ".p: {script: x, parallel: 200}\n", "j%d: {extends: .p}\n"), "more than 500 jobs"},
		{"a matrix", "job: {script: x, parallel: {matrix: [{" + many(50, "", "V%d: [a, b, c, d], ") + "}]}}\n", "more than 200 combinations"},
		{"many variables for many jobs", "variables: {" + keysOf(3000) + "}\n" + many(450, "", "j%d: {script: x}\n"), "variables: 500 are enough"},
		{"many names that are not there", many(1500, "", "jjjjjjjjjjjjjjj%[1]d: {extends: jjjjjjjjjjjjjjjj%[1]dx}\n"), "not in the file"},
		{"a billion laughs in values", "variables: {" + many(40, "", "A%[1]d: $A%[2]d$A%[2]d, ") + "A40: xxxxxxxxxx}\njob: {script: x}\n",
			"more than 131071 bytes"},
		{"a value that is too long", "job: {script: x, variables: {A: " + strings.Repeat("x", 140_000) + "}}", "more than 131071 bytes"},
		{"a matrix of many variables", "job: {script: x, parallel: {matrix: [{A: [" + strings.Repeat("a, ", 200) + "], " + keysOf(2500) + "}]}}\n",
			"variables: 50 are enough"},
		{"many jobs by aliases", "j: &j {script: x, artifacts: {paths: [" + strings.Repeat("p, ", 15_000) + "]}}\n" + many(8000, "", "j%d: *j\n"),
			"1000 are enough"},
		{"many jobs that inherit much", "variables: {" + keysOf(500) + "}\nj: &j {script: x, inherit: {variables: [" + strings.Repeat(many(500, "", "k%d, "), 2) + "]}}\n" +
			many(5000, "", "j%d: *j\n"), "more than 1000 jobs"},
		{"many stages", "stages: [" + many(20_000, "", "s%d, ") + "]\njob: {script: x}\n", "stages has 20000 texts: 1000 are enough"},
		{"many errors", many(6000, "", "j%d: {x: 1}\n"), "no keyword"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if len(c.data) > tree.MaxSize {
				t.Fatalf("the file has %d bytes", len(c.data))
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			found := wrong(t, c.data)
			runtime.ReadMemStats(&after)
			checkErrors(t, found, c.data)
			require.Contains(t, found.Error(), c.want)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(700<<20), "bytes allocated")
		})
	}
}

// laughs defines the anchors l0 to l12, each of which is made of the one before.
func laughs(of, first string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".l0: &l0 %s\n", first)
	for i := range 12 {
		text := of
		for strings.Contains(text, "%d") {
			text = strings.Replace(text, "%d", fmt.Sprint(i), 1)
		}
		text = strings.NewReplacer("%[1]d", fmt.Sprint(i), "%[2]d", fmt.Sprint(i)).Replace(text)
		fmt.Fprintf(&b, ".l%d: &l%d %s\n", i+1, i+1, text)
	}
	return b.String()
}

// large returns a list of one large mapping and many that merge it.
func large(first, each string) string {
	return ".list:\n" + fmt.Sprintf(first, keysOf(4000)) + "\n" + strings.Repeat("- "+each+"\n", 1000) + "job: {script: x}\n"
}

func keysOf(n int) string { return many(n, "", "k%d: x, ") }

func many(n int, first, each string) string {
	var b strings.Builder
	b.WriteString(first)
	for i := range n {
		if strings.Contains(each, "%[2]d") {
			fmt.Fprintf(&b, each, i, i+1)
			continue
		}
		fmt.Fprintf(&b, each, i)
	}
	return b.String()
}

func chainOf(n int) string {
	var b strings.Builder
	b.WriteString(".a0: &a0 [x]\n")
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, ".a%d: &a%d [*a%d]\n", i, i, i-1)
	}
	fmt.Fprintf(&b, "job: {script: *a%d}\n", n-1)
	return b.String()
}

func TestErrorsAreBounded(t *testing.T) {
	found := wrong(t, many(400, "", "j%d: {x: 1, script: y}\n"))
	require.Len(t, found.Problems, tree.MaxReported)
	require.Equal(t, 400-tree.MaxReported, found.More)
	require.True(t, strings.HasSuffix(found.Error(), "f.yml:50:7: 350 more errors after these"), found.Error())
}
