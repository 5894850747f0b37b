//go:build !explore

package tree

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Without the build tag explore the engine's primitives are those of the
// standard library. The types are the same and not only alike: so the machine
// code is, too.
var (
	_ *sync.Mutex           = (*Mutex)(nil)
	_ *sync.Cond            = (*Cond)(nil)
	_ *sync.Pool            = (*Pool)(nil)
	_ *atomic.Bool          = (*AtomicBool)(nil)
	_ *atomic.Int32         = (*AtomicInt32)(nil)
	_ *atomic.Int64         = (*AtomicInt64)(nil)
	_ *atomic.Pointer[Task] = (*AtomicPointer[Task])(nil)
)

// An access that does not go through the engine's own names is one that the
// explorer does not see.
func TestEngineUsesItsOwnPrimitives(t *testing.T) {
	var files []string
	for _, dir := range []string{".", "../items", "../.."} { // the words use them, too
		in, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		files = append(files, in...)
	}
	for _, path := range files {
		name := filepath.Base(path)
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "primitives") {
			continue
		}
		src, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, i := range src.Imports {
			if name == "stdcontext.go" && i.Path.Value == `"sync"` {
				continue // sync.OnceValue: what it calls shares nothing
			}
			if i.Name != nil && i.Name.Name == "_" {
				continue // nothing is used of it
			}
			require.NotContains(t, []string{`"sync"`, `"sync/atomic"`}, i.Path.Value, "%s: use the names in primitives.go", name)
		}
	}
}
