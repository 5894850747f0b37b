//go:build unix

package proc

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async/asynctest"
)

// hooked is a writer that cannot be compared.
type hooked struct {
	io.Writer
	hook func()
}

func (h hooked) Write(p []byte) (int, error) {
	h.hook()
	return h.Writer.Write(p)
}

// listed is another.
type listed []io.Writer

func (l listed) Write(p []byte) (int, error) { return l[0].Write(p) }

// A script that writes to both in turn is given to one writer in that order,
// whatever the type of the writer is.
func TestOneWriterGetsBothStreamsInOrder(t *testing.T) {
	const lines = 300
	var want strings.Builder
	for i := range lines {
		fmt.Fprintf(&want, "out %d\nerr %d\n", i, i)
	}
	for name, writers := range map[string]func(out io.Writer) (stdout, stderr io.Writer){
		"a pointer":        func(out io.Writer) (_, _ io.Writer) { return out, out },
		"a wrapper":        func(out io.Writer) (_, _ io.Writer) { return struct{ io.Writer }{out}, struct{ io.Writer }{out} },
		"one uncomparable": func(out io.Writer) (_, _ io.Writer) { w := io.Writer(hooked{out, func() {}}); return w, w },
		"copies of one": func(out io.Writer) (_, _ io.Writer) {
			w := hooked{out, func() {}}
			return w, w
		},
		"copies in a wrapper": func(out io.Writer) (_, _ io.Writer) {
			w := hooked{out, func() {}}
			return struct{ io.Writer }{w}, struct{ io.Writer }{w}
		},
		"slices": func(out io.Writer) (_, _ io.Writer) { w := listed{out}; return w, w },
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer // not for two goroutines at once
			c := bash(fmt.Sprintf("for ((i = 0; i < %d; i++)); do echo out $i; echo err $i >&2; done", lines))
			c.Stdout, c.Stderr = writers(&out)
			_, err := Run(asynctest.Context(t), c)
			require.NoError(t, err)
			assert.Equal(t, want.String(), out.String())
		})
	}
}

func TestSame(t *testing.T) {
	var one, two bytes.Buffer
	var nilFile *os.File
	f := func() func() { n := 0; return func() { n++ } }
	a := f()
	list := []io.Writer{&one}
	type named struct {
		io.Writer
		f    func()
		name string
		rate float64
		more [2]any
		_    func()
	}
	w := named{&one, a, "w", 1, [2]any{list, nil}, nil}
	change := func(change func(*named)) named { c := w; change(&c); return c }
	uncounted := io.Writer(struct {
		io.Writer
		rate float64
	}{&one, math.NaN()})
	for name, test := range map[string]struct {
		a, b io.Writer
		want bool
	}{
		"nothing":                    {nil, nil, false},
		"one of them":                {&one, nil, false},
		"the other":                  {nil, &one, false},
		"a nil file":                 {nilFile, nilFile, true},
		"a pointer":                  {&one, &one, true},
		"two pointers":               {&one, &two, false},
		"pointers of two types":      {&one, new(strings.Builder), false},
		"functions":                  {writerFunc(one.Write), writerFunc(one.Write), false}, // made twice
		"closures":                   {hooked{&one, a}, hooked{&one, f()}, false},
		"a closure":                  {hooked{&one, a}, hooked{&one, a}, true},
		"no closure":                 {hooked{&one, nil}, hooked{&one, nil}, true},
		"a slice":                    {listed(list), listed(list), true},
		"a part of it":               {listed(list), listed(list[:0]), false},
		"slices alike":               {listed{&one}, listed{&one}, false},
		"not a number":               {uncounted, uncounted, true},
		"copies":                     {w, change(func(*named) {}), true},
		"but for the writer":         {w, change(func(n *named) { n.Writer = &two }), false},
		"but for the function":       {w, change(func(n *named) { n.f = f() }), false},
		"but for the name":           {w, change(func(n *named) { n.name = "v" }), false},
		"an equal name":              {w, change(func(n *named) { n.name = strings.Clone("w") }), true},
		"but for a number":           {w, change(func(n *named) { n.rate = 2 }), false},
		"but for an element":         {w, change(func(n *named) { n.more[0] = listed{} }), false},
		"but for one that is nil":    {w, change(func(n *named) { n.more[1] = 1 }), false},
		"but for one that is no nil": {w, change(func(n *named) { n.more[0] = nil }), false},
	} {
		assert.Equal(t, test.want, same(test.a, test.b), name)
		assert.Equal(t, test.want, same(test.b, test.a), name)
	}
	fn := writerFunc(one.Write)
	assert.True(t, same(fn, fn))
}

// Two writers that differ have a pipe each, also if they look alike.
func TestTwoWritersGetTheirOwnStream(t *testing.T) {
	var mu sync.Mutex
	var out []string
	to := func(stream string) io.Writer {
		return writerFunc(func(p []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			out = append(out, stream+": "+string(p))
			return len(p), nil
		})
	}
	c := bash("echo a; echo b >&2")
	c.Stdout, c.Stderr = to("stdout"), to("stderr")
	_, err := Run(asynctest.Context(t), c)
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"stdout: a\n", "stderr: b\n"}, out)
}
