//go:build !explore

package async

import (
	"go/parser"
	"go/token"
	"os"
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
	_ *sync.Mutex           = (*mutex)(nil)
	_ *sync.Cond            = (*cond)(nil)
	_ *sync.Pool            = (*pool)(nil)
	_ *atomic.Bool          = (*atomicBool)(nil)
	_ *atomic.Int32         = (*atomicInt32)(nil)
	_ *atomic.Int64         = (*atomicInt64)(nil)
	_ *atomic.Pointer[task] = (*atomicPointer[task])(nil)
)

// An access that does not go through the engine's own names is one that the
// explorer does not see.
func TestEngineUsesItsOwnPrimitives(t *testing.T) {
	files, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, f := range files {
		name := f.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "primitives") {
			continue
		}
		src, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, i := range src.Imports {
			if name == "stdcontext.go" && i.Path.Value == `"sync"` {
				continue // sync.OnceValue: what it calls shares nothing
			}
			require.NotContains(t, []string{`"sync"`, `"sync/atomic"`}, i.Path.Value, "%s: use the names in primitives.go", name)
		}
	}
}
