package main

import (
	"bytes"
	"context"
	"image"
	"image/jpeg"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/ambit-go/ambit/examples/internal/clitest"
)

// quickExit is for programs with the race detector: else each that ends well waits
// a second, lest goroutines that are left have a race. All have ended by then.
const quickExit = "atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" "+quickExit))
	clitest.Main(m, map[string]func(){"thumbnails": main})
}

// TestScripts runs the program as its users do. Its scripts have
//
//	paint FILE WIDTH HEIGHT	paints a picture
//	cut FILE	takes the second half of a file away
//	whole FILE WIDTH HEIGHT	the file must be a whole jpeg of that size
func TestScripts(t *testing.T) {
	env := func(e *testscript.Env) error { e.Setenv("GORACE", os.Getenv("GORACE")); return nil }
	clitest.Scripts(t, testscript.Params{Setup: env, Cmds: map[string]func(*testscript.TestScript, bool, []string){
		"paint": func(ts *testscript.TestScript, _ bool, args []string) {
			w, h := number(ts, args[1]), number(ts, args[2])
			data, err := encode(args[0], w, h, 0)
			ts.Check(err)
			ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o666))
		},
		"cut": func(ts *testscript.TestScript, _ bool, args []string) {
			data := ts.ReadFile(args[0])
			ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(data[:len(data)/2]), 0o666))
		},
		"whole": func(ts *testscript.TestScript, _ bool, args []string) {
			img, err := jpeg.Decode(strings.NewReader(ts.ReadFile(args[0])))
			ts.Check(err)
			if got, want := img.Bounds().Size(), image.Pt(number(ts, args[1]), number(ts, args[2])); got != want {
				ts.Fatalf("%s is %v, not %v", args[0], got, want)
			}
		},
	}})
}

func number(ts *testscript.TestScript, s string) int {
	n, err := strconv.Atoi(s)
	ts.Check(err)
	return n
}

// A test that waits for something is hung after this time.
const patience = time.Minute

// eventually waits until ok says true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	probe := func(context.Context) (struct{}, bool, error) { return struct{}{}, ok(), nil }
	_, err := async.Poll(t.Context(), async.Every(5*time.Millisecond), probe).Await(t.Context(), patience)
	require.NoError(t, err, what)
}

// pictureIn paints a picture into a folder, in one step: as programs do that
// write elsewhere and rename.
func pictureIn(t *testing.T, folder, name string, w, h, hue int) {
	t.Helper()
	data, err := encode(name, w, h, hue)
	require.NoError(t, err)
	write(t, filepath.Join(folder, name), data)
}

func write(t *testing.T, file string, data []byte) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o777))
	require.NoError(t, os.WriteFile(file+".new", data, 0o666))
	require.NoError(t, os.Rename(file+".new", file))
}

// upToDate reports whether the thumbnail of a picture has its time.
func upToDate(folder, out, name string) bool {
	picture, err := os.Stat(filepath.Join(folder, name))
	if err != nil {
		return false
	}
	thumb, err := os.Stat(filepath.Join(out, name+thumbnailSuffix))
	return err == nil && thumb.ModTime().Equal(picture.ModTime())
}

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

// filesIn returns the names of the files in a folder, but for the program's own.
func filesIn(t *testing.T, folder string) (names []string) {
	t.Helper()
	require.NoError(t, fs.WalkDir(os.DirFS(folder), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && name != lockFile && name != ownerFile {
			names = append(names, name)
		}
		return err
	}))
	return names
}

// configFor returns what the flags say when none is given, and two folders.
func configFor(t *testing.T) config {
	t.Helper()
	cfg := config{size: 160, pixels: 50, workers: 2, attempts: 5, delay: time.Second, rescan: time.Hour, limit: time.Minute, verbose: true}
	cfg.out = t.TempDir()
	require.NoError(t, cfg.folders(t.TempDir()))
	return cfg
}

// openStudio opens one on two folders, and returns what it prints.
func openStudio(t *testing.T) (*studio, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	s, err := open(configFor(t), cli.Streams{Out: &out, Err: &out})
	require.NoError(t, err)
	t.Cleanup(s.close)
	return s, &out
}
