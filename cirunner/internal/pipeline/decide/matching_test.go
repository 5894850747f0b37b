package decide

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A pattern that cannot be compared in reasonable time matches, as in GitLab; a name without a
// wildcard is always looked for.
func TestTooManyComparisons(t *testing.T) {
	files := make([]string, 60_000)
	for i := range files {
		files[i] = fmt.Sprint("file", i)
	}
	require.True(t, anyMatches([]string{"*.go"}, files))
	require.False(t, anyMatches([]string{"*.go"}, files[:40_000]))
	require.False(t, anyMatches([]string{"Dockerfile"}, files))
	require.True(t, anyMatches([]string{"file59999"}, files))
}
