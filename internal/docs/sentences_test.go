package docs

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	block    = regexp.MustCompile(`\n(?:\s*\n|\s*(?:[-*]|\d+\.) )`) // the next paragraph or item begins
	title    = regexp.MustCompile(`(?m)^#.*$`)
	item     = regexp.MustCompile(`^\s*(?:[-*] |\d+\. )?["'(*]*`)
	indented = regexp.MustCompile(`(?m)^\t.*$`)
	hard     = regexp.MustCompile(`(?:^|[.!?]["')*` + "`" + `]*\s+)["'(*]*((?:What|That|Of) [^.]*)`)
)

// TestNoSentenceBeginsWithAWordThatMakesItHard looks at each page and each comment of the repository: a sentence that begins
// with What, That or Of has its subject late, or not at all. A heading may; so may a comment on a function that is called Of.
func TestNoSentenceBeginsWithAWordThatMakesItHard(t *testing.T) {
	looked := 0
	for path, name := range files(t, ".md", ".go") {
		source, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) || strings.Contains(name, "testdata") {
			continue // another test had made it, or it is no text of ours
		}
		require.NoError(t, err)
		texts := []string{fenced.ReplaceAllString(string(source), "")}
		if filepath.Ext(path) == ".go" {
			texts = comments(t, source)
		}
		for _, text := range texts {
			looked++
			for _, sentence := range hardSentences(text) {
				t.Errorf("%s: say the noun: %q", name, sentence)
			}
		}
	}
	require.Greater(t, looked, 5000)
}

// comments are those of a file, but the name that a comment on a declaration begins with.
func comments(t *testing.T, source []byte) (texts []string) {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	names := map[*ast.CommentGroup]string{}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			names[f.Doc] = f.Name.Name + " "
		}
	}
	for _, c := range file.Comments {
		texts = append(texts, strings.TrimPrefix(indented.ReplaceAllString(c.Text(), ""), names[c]))
	}
	return texts
}

// hardSentences are those of a text that begin so.
func hardSentences(text string) (found []string) {
	for _, part := range block.Split("\n\n"+title.ReplaceAllString(text, ""), -1) {
		for _, m := range hard.FindAllStringSubmatch(item.ReplaceAllString(part, ""), -1) {
			found = append(found, m[1])
		}
	}
	return found
}

// TestAHardSentenceIsFound shows that the check can fail.
func TestAHardSentenceIsFound(t *testing.T) {
	for text, hard := range map[string]bool{
		"What is left goes.":                 true,
		"It ends. That is all.":              true,
		"It ends (soon). Of two one is left": true,
		"It ends.\nWhat is left goes.":       true,
		"- first\n- What is left goes.":      true,
		"1. **What is left** goes.":          true,
		"# What is left\n\nAll.":             false,
		"It is that. All of it, that is.":    false,
		"Whatever is left, that goes.":       false,
		"| Of |\n":                           false,
	} {
		assert.Equal(t, hard, len(hardSentences(text)) > 0, text)
	}
	source := "package p\n\n// Of is one.\n//\n//\tWhat is code\nfunc Of() {}\n\n// That is another.\nfunc other() {}\n"
	var found []string
	for _, text := range comments(t, []byte(source)) {
		found = append(found, hardSentences(text)...)
	}
	assert.Equal(t, fmt.Sprint([]string{"That is another"}), fmt.Sprint(found))
}
