package vars

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestResolve(t *testing.T) {
	outside := map[string]string{"HOME": "/home/x", "PATH": "/bin"}
	got, err := Resolve(map[string]string{
		"A": "$B-${B}x", "B": "b$C", "C": "c",
		"PATH":   "tools:$PATH",
		"home":   "$HOME/x",
		"price":  "5 $$C and $5 and ${} and ${open",
		"none":   "[$NOBODY]",
		"circle": "$round", "round": "o$circle",
		"self": "${self}s",
		"end":  "$",
	}, func(name string) (string, bool) { v, ok := outside[name]; return v, ok })
	require.NoError(t, err)
	for name, want := range map[string]string{
		"A": "bc-bcx", "B": "bc", "PATH": "tools:/bin", "home": "/home/x/x",
		"price": "5 $C and $5 and ${} and ${open", "none": "[]", "self": "${self}s", "end": "$",
		"circle": "$round", "round": "o$circle",
	} {
		assert.Equal(t, want, got[name], name)
	}
}

// The value of a variable in a circle does not depend on where one begins.
func TestACircleIsTheSameEveryTime(t *testing.T) {
	want := map[string]string{"A": "a$B", "B": "b$C", "C": "c${A}", "in": "[a$B]", "out": "o"}
	for range 100 {
		got, err := Resolve(map[string]string{"A": "a$B", "B": "b$C", "C": "c${A}", "in": "[$A]", "out": "o"}, nobody)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// Each refers twice to the one before: 2^40 bytes, if somebody made them.
func TestVariablesCannotGrowLarge(t *testing.T) {
	laughs := map[string]string{"A00": "xxxxxxxxxx"}
	for i := range 40 {
		laughs[fmt.Sprintf("A%02d", i+1)] = fmt.Sprintf("$A%02d$A%02d", i, i)
	}
	_, err := Resolve(laughs, nobody)
	var large *TooLargeError
	require.ErrorAs(t, err, &large)
	assert.Equal(t, &TooLargeError{"A14", MaxValue}, large)

	half := strings.Repeat("x", MaxValue/2)
	all := map[string]string{}
	for i := range 30 {
		all[fmt.Sprintf("A%02d", i)] = half
	}
	_, err = Resolve(all, nobody)
	require.ErrorAs(t, err, &large)
	assert.Equal(t, &TooLargeError{"A15", MaxTotal}, large)

	_, err = Expand("$A$A$A", map[string]string{"A": half})
	require.ErrorAs(t, err, &large)
}

func nobody(string) (string, bool) { return "", false }

func FuzzResolve(f *testing.F) {
	f.Add("$B", "${A}")
	f.Add("$$", "${")
	f.Fuzz(func(t *testing.T, a, b string) {
		_, _ = Resolve(map[string]string{"A": a, "B": b}, nobody)
	})
}

func TestEnviron(t *testing.T) {
	got := Environ([]string{"A=1", "B=2", "odd"}, Merge(map[string]string{"B": "3", "C": "4"}, map[string]string{"C": "5"}))
	assert.Equal(t, []string{"A=1", "odd", "B=3", "C=5"}, got)
	expanded, err := Expand("x${A}y", map[string]string{"A": "1"})
	require.NoError(t, err)
	assert.Equal(t, "x1y", expanded)
}
