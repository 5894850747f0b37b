package parse

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the messages that are found to testdata/errors/*.txt")

// TestEveryErrorOfAFileIsReported compares what is said of wrong files with what
// should be: everything that is wrong with them, in order, at the place.
func TestEveryErrorOfAFileIsReported(t *testing.T) {
	files, err := filepath.Glob("testdata/errors/*.yml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			_, err = Options{Strict: true}.Parse(filepath.Base(file), data)
			var found *pipeline.Errors
			require.ErrorAs(t, err, &found)
			golden := strings.TrimSuffix(file, ".yml") + ".txt"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(found.Detail()+"\n"), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), found.Detail()+"\n")
		})
	}
}
