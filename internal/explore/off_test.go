//go:build !explore

package explore_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// plain are the names that the engines use for primitives, and what they stand
// for when nothing is explored. Those of package tree begin with a capital letter.
var plain = map[string]string{
	"mutex": "sync.Mutex", "cond": "sync.Cond", "pool": "sync.Pool",
	"atomicBool": "atomic.Bool", "atomicInt32": "atomic.Int32", "atomicInt64": "atomic.Int64",
	"atomicUint32": "atomic.Uint32", "atomicPointer": "atomic.Pointer",
}

// TestOffNothingOfTheExplorerIsLeft: the engines are compiled to the same functions,
// of the same size, with the same instructions, as if their sources used sync and
// sync/atomic and had none of the explorer's calls. Only the addresses differ, as
// the linker has another order.
func TestOffNothingOfTheExplorerIsLeft(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds two programs")
	}
	dir := t.TempDir()
	overlay := map[string]string{}
	for _, engine := range []string{"async", "async/internal/tree", "async/internal/items", "scheduler"} {
		files, err := filepath.Glob(filepath.Join("..", "..", engine, "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, "primitives_explore.go") {
				continue
			}
			src, err := os.ReadFile(file)
			require.NoError(t, err)
			written := []byte("package " + filepath.Base(engine) + "\n")
			if filepath.Base(file) != "primitives.go" {
				written = withoutExplorer(t, src)
			}
			file, err = filepath.Abs(file)
			require.NoError(t, err)
			overlay[file] = filepath.Join(dir, strings.ReplaceAll(engine, "/", "_")+"_"+filepath.Base(file))
			require.NoError(t, os.WriteFile(overlay[file], written, 0o600))
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": overlay})
	require.NoError(t, err)
	overlayFile := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(overlayFile, list, 0o600))

	off := functionsOf(t, filepath.Join(dir, "off"))
	without := functionsOf(t, filepath.Join(dir, "without"), "-overlay", overlayFile)
	require.Greater(t, len(off), 500)
	for name, code := range off {
		require.True(t, without[name] == code, "%s is not the same", name)
	}
	require.Len(t, without, len(off))
}

// functionsOf builds the program in testdata/off and returns the functions of the
// engines in it: by their names, their instructions without addresses.
func functionsOf(t *testing.T, to string, args ...string) map[string]string {
	t.Helper()
	run := func(args ...string) string {
		out, err := exec.Command("go", args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	args = append([]string{"build", "-trimpath", "-buildvcs=false", "-o", to}, args...)
	run(append(args, "./testdata/off")...)
	functions := map[string]string{}
	name := ""
	for line := range strings.Lines(run("tool", "objdump", "-s", "ambit/(async|scheduler)", to)) {
		if strings.HasPrefix(line, "TEXT ") {
			name = strings.Fields(line)[1]
			continue
		}
		if at := strings.Fields(line); len(at) > 3 { // file:line, address, bytes, instruction
			functions[name] += at[0] + " " + fmt.Sprint(len(at[2])) + " " + address.ReplaceAllString(strings.Join(at[3:], " "), "") + "\n"
		}
	}
	return functions
}

// lower returns the name that n is, or of package tree, beginning with a small letter; "" if
// it is none.
func lower(n ast.Expr) string {
	if s, ok := n.(*ast.SelectorExpr); ok {
		if pkg, ok := s.X.(*ast.Ident); !ok || pkg.Name != "tree" {
			return ""
		}
		n = s.Sel
	}
	id, ok := n.(*ast.Ident)
	if !ok {
		return ""
	}
	return strings.ToLower(id.Name[:1]) + id.Name[1:]
}

// address is what the linker decides on: numbers in operands. How long each is in
// the code is compared.
var address = regexp.MustCompile(`0x[0-9a-f]+`)

// withoutExplorer returns src with the names of package sync, and without the
// calls of the explorer. Nothing is moved to another line.
func withoutExplorer(t *testing.T, src []byte) []byte {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, "", src, parser.ParseComments)
	require.NoError(t, err)
	type edit struct {
		from, to int
		text     string
	}
	var edits []edit
	replace := func(n ast.Node, text string) {
		edits = append(edits, edit{files.Position(n.Pos()).Offset, files.Position(n.End()).Offset, text})
	}
	imports, conditions := map[string]bool{}, map[*ast.Ident]bool{}
	primitive := func(n ast.Node, name string) bool {
		real, ok := plain[name]
		if ok {
			replace(n, real)
			pkg, _, _ := strings.Cut(real, ".")
			imports[strings.Replace(pkg, "atomic", "sync/atomic", 1)] = true
		}
		return ok
	}
	for _, id := range f.Unresolved {
		conditions[id] = lower(id) == "exploring"
		primitive(id, lower(id))
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr: // tree.Mutex
			if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "tree" && primitive(n, lower(n.Sel)) {
				return false
			}
		case *ast.IfStmt:
			if lower(n.Cond) == "exploring" {
				replace(n, strings.Repeat("\n", files.Position(n.End()).Line-files.Position(n.Pos()).Line))
				return false
			}
		case *ast.ExprStmt:
			if call, ok := n.X.(*ast.CallExpr); ok {
				if lower(call.Fun) == "born" {
					replace(n, "")
				}
			}
		}
		if id, ok := n.(*ast.Ident); ok && conditions[id] {
			replace(id, "false")
		}
		return true
	})
	for _, i := range f.Imports {
		delete(imports, strings.Trim(i.Path.Value, `"`))
	}
	text := ""
	for name := range imports {
		text += "; import \"" + name + "\""
	}
	end := files.Position(f.Name.End()).Offset
	edits = append(edits, edit{end, end, text})
	slices.SortFunc(edits, func(a, b edit) int { return b.from - a.from })
	out := string(src)
	for _, e := range edits {
		out = out[:e.from] + e.text + out[e.to:]
	}
	return []byte(out)
}
