package docs

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The public packages of the module, but compat, whose functions are those of another library.
var documented = []string{"async", "async/asynctest", "async/asyncz", "async/record", "scheduler", "jobqueue", "batch", "lease", "service", "proc", "clitest"}

// The exported functions that are no models, and why.
var undocumented = map[string]string{
	"async.Open": "deprecated: its comment says what to write instead",
}

// TestEachFunctionIsDocumentedByACall looks at the exported functions of the public packages: each has an
// example, and a comment that leads with one sentence and a call, before all that there is to say besides.
// Methods with more to say than a paragraph have such a comment, too.
func TestEachFunctionIsDocumentedByACall(t *testing.T) {
	functions, excused := 0, 0
	for _, dir := range documented {
		for _, f := range exported(readPackage(t, filepath.Join("..", "..", dir))) {
			name := filepath.Base(dir) + "." + f.name
			if undocumented[name] != "" {
				excused++
				continue
			}
			functions++
			for _, fault := range f.faults() {
				t.Errorf("%s: %s", name, fault)
			}
		}
	}
	require.Greater(t, functions, 100, "the functions are not found")
	require.Len(t, undocumented, excused, "an excuse for a function that there is not")
}

// TestEachPackageHasAWholeExample looks for an example of each public package: a program that puts several of its functions together.
func TestEachPackageHasAWholeExample(t *testing.T) {
	for _, dir := range documented {
		examples := readPackage(t, filepath.Join("..", "..", dir)).Examples
		whole := slices.ContainsFunc(examples, func(e *doc.Example) bool { return e.Suffix == "" })
		assert.True(t, whole, "package %s has no func Example()", dir)
	}
}

var qualified = regexp.MustCompile(`\b([a-z]+)\.([A-Z]\w*)`)

// TestTheDocsOfPackagesNameWhatThereIs looks at the code in the comments of packages, most of which is no whole function.
func TestTheDocsOfPackagesNameWhatThereIs(t *testing.T) {
	known, looked := map[string][]string{}, 0
	var all []*doc.Package
	for _, dir := range documented {
		p := readPackage(t, filepath.Join("..", "..", dir))
		all, known[p.Name] = append(all, p), names(p)
	}
	for _, p := range all {
		for _, block := range p.Parser().Parse(p.Doc).Content {
			code, ok := block.(*comment.Code)
			if !ok {
				continue
			}
			for _, m := range qualified.FindAllStringSubmatch(code.Text, -1) {
				if names, ours := known[m[1]]; ours {
					looked++
					assert.Contains(t, names, m[2], "the comment of package %s", p.Name)
				}
			}
		}
	}
	require.Greater(t, looked, 20)
}

// TestABadDocCommentIsFound shows that the check can fail, one fault a function.
func TestABadDocCommentIsFound(t *testing.T) {
	const source = `// Package bad is badly documented.
package bad

// Good is good.
//
//	bad.Good()
//
// # Details
//
// There is more.
func Good() {}

// Two are two. Sentences.
//
//	bad.Two()
func Two() {}

// NoCall has none.
func NoCall() {}

// NoGo does not compile.
//
//	bad.NoGo(
func NoGo() {}

// Elsewhere shows something else.
//
//	bad.Missing()
func Elsewhere() {}

// Long shows too much.
//
//	bad.Long()
//	bad.Long()
//	bad.Long()
//	bad.Long()
func Long() {}

// Edges stand without a heading.
//
//	bad.Edges()
//
// There is more.
func Edges() {}

// NoExample has none.
//
//	bad.NoExample()
func NoExample() {}

// A T has a method.
type T struct{}

// Short has little to say.
func (T) Short() {}

// Method has more to say, without a call.
//
// There is more.
func (T) Method() {}
`
	var tests strings.Builder
	tests.WriteString("package bad_test\n")
	for _, f := range []string{"Good", "Two", "NoCall", "NoGo", "Elsewhere", "Long", "Edges"} {
		fmt.Fprintf(&tests, "func Example%s() {}\n", f)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for name, text := range map[string]string{"bad.go": source, "bad_test.go": tests.String()} {
		file, err := parser.ParseFile(fset, name, text, parser.ParseComments)
		require.NoError(t, err)
		files = append(files, file)
	}
	p, err := doc.NewFromFiles(fset, files, "bad")
	require.NoError(t, err)
	found := map[string][]string{}
	for _, f := range exported(p) {
		found[f.name] = f.faults()
	}
	require.Equal(t, map[string][]string{
		"Good":      nil,
		"Two":       {"the first paragraph is not one sentence"},
		"NoCall":    {"no call follows the first sentence"},
		"NoGo":      {"the call does not parse"},
		"Elsewhere": {"the call names bad.Missing, which there is not"},
		"Long":      {"the call has 4 lines"},
		"Edges":     {"no heading Details follows the call"},
		"NoExample": {"no example"},
		"T.Method":  {"no call follows the first sentence"},
	}, found)
}

// A function of a package, as a reader finds it.
type function struct {
	*doc.Func
	name string // with the type of a method
	in   *doc.Package
}

// exported returns the functions of p, and the methods whose comments have several paragraphs.
func exported(p *doc.Package) []function {
	var all []function
	for _, f := range p.Funcs {
		all = append(all, function{f, f.Name, p})
	}
	for _, t := range p.Types {
		for _, f := range t.Funcs {
			all = append(all, function{f, f.Name, p})
		}
		for _, f := range t.Methods {
			if len(p.Parser().Parse(f.Doc).Content) > 1 {
				all = append(all, function{f, t.Name + "." + f.Name, p})
			}
		}
	}
	return all
}

var sentenceEnd = regexp.MustCompile(`[.!?]\s+\S`)

// faults says what is wrong with the documentation of f.
func (f function) faults() []string {
	var faults []string
	if f.Recv == "" && len(f.Examples) == 0 {
		faults = append(faults, "no example")
	}
	content := f.in.Parser().Parse(f.Doc).Content
	if first, _, _ := strings.Cut(f.Doc, "\n\n"); sentenceEnd.MatchString(first) {
		faults = append(faults, "the first paragraph is not one sentence")
	}
	if len(content) < 2 {
		return append(faults, "no call follows the first sentence")
	}
	code, ok := content[1].(*comment.Code)
	if !ok {
		return append(faults, "no call follows the first sentence")
	}
	if lines := strings.Count(code.Text, "\n"); lines > longestCall {
		faults = append(faults, fmt.Sprintf("the call has %d lines", lines))
	}
	if len(content) > 2 {
		if heading, ok := content[2].(*comment.Heading); !ok || fmt.Sprint(heading.Text) != "[Details]" {
			faults = append(faults, "no heading Details follows the call")
		}
	}
	return append(faults, f.callFaults(code.Text)...)
}

// longestCall is how many lines a call may have. More of them belong in the example.
const longestCall = 3

// callFaults says what is wrong with the code of a call: it parses, as the body of a function or as functions,
// and the names of the package that it uses are there.
func (f function) callFaults(code string) []string {
	file, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc _() {\n"+code+"\n}", 0)
	if err != nil {
		file, err = parser.ParseFile(token.NewFileSet(), "", "package p\n"+code, 0)
	}
	if err != nil {
		return []string{"the call does not parse"}
	}
	var faults []string
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == f.in.Name && !slices.Contains(names(f.in), s.Sel.Name) {
				faults = append(faults, fmt.Sprintf("the call names %s.%s, which there is not", x.Name, s.Sel.Name))
			}
		}
		return true
	})
	return faults
}

// names returns the exported names of p.
func names(p *doc.Package) []string {
	var all []string
	values := slices.Concat(p.Consts, p.Vars)
	for _, f := range p.Funcs {
		all = append(all, f.Name)
	}
	for _, t := range p.Types {
		all = append(all, t.Name)
		values = append(values, slices.Concat(t.Consts, t.Vars)...)
		for _, f := range t.Funcs {
			all = append(all, f.Name)
		}
	}
	for _, v := range values {
		all = append(all, v.Names...)
	}
	return all
}

// readPackage returns the documentation of the package in dir, as it is on Linux, with its examples.
func readPackage(t *testing.T, dir string) *doc.Package {
	on := build.Default
	on.GOOS, on.GOARCH = "linux", "amd64"
	p, err := on.ImportDir(dir, 0)
	require.NoError(t, err)
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range slices.Concat(p.GoFiles, p.TestGoFiles, p.XTestGoFiles) {
		file, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.ParseComments)
		require.NoError(t, err)
		files = append(files, file)
	}
	documentation, err := doc.NewFromFiles(fset, files, filepath.ToSlash(dir))
	require.NoError(t, err)
	return documentation
}
