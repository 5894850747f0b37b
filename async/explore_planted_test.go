//go:build explore

package async

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A plant is a bug: text, which stands in one file of the engine once, is
// replaced.
type plant struct {
	what, text, by string
}

// plants are one of each kind of mistake that a protocol of ours invites.
var plants = []plant{
	{"a wait does not look for a cancellation after it has registered",
		"if under.Why.Load() != nil {\n\t\t\tw.notify(gotStop)", "if !planted(1) && under.Why.Load() != nil {\n\t\t\tw.notify(gotStop)"},
	{"a join looks, and notes its wait in a second step",
		"s.joiner = w\n\t\t\ts.Mu.Unlock()", "if planted(2) {\n\t\ts.Mu.Unlock()\n\t\ts.Mu.Lock()\n\t}\n\ts.joiner = w\n\ts.Mu.Unlock()"},
	{"a task leaves its scope before its outcome is published",
		"waiters := f.Publish(v)\n", "if planted(3) {\n\t\tf.Task.Leave()\n\t\tWake(f.Publish(v))\n\t\treturn\n\t}\n\twaiters := f.Publish(v)\n"},
	{"a waiter is used again that may still be notified",
		"func (s *oneWait) unregister(clean bool) {", "func (s *oneWait) unregister(clean bool) {\n\tclean = clean || planted(4)"},
	{"to decide on a delivery is two steps",
		"{ return d.decided.CompareAndSwap(false, true) }", "{\n\tif planted(5) {\n\t\tbefore := d.decided.Load()\n\t\td.decided.Store(true)\n\t\treturn !before\n\t}\n\treturn d.decided.CompareAndSwap(false, true)\n}"},
	{"a waiter is linked without a look at whether the future has settled",
		"open := !f.Settled()\n\tif open {\n\t\tf.addWaiterLocked(w)", "open := planted(6) || !f.Settled()\n\tif open {\n\t\tf.addWaiterLocked(w)"},
	{"a standard context is stored without a look at what was noted meanwhile",
		"if s.std.Load() == nil && s.Why.Load() == stop {", "if s.std.Load() == nil && (planted(7) || s.Why.Load() == stop) {"},
	{"a late notification is kept for the next wait",
		"got, w.got, w.until = w.got, 0, 0\n", "late := w.got & gotExpired\n\tgot, w.got, w.until = w.got, 0, 0\n\tif planted(8) {\n\t\tw.got = late\n\t}\n"},
	{"an inner scope that is made late does not ask what is above it",
		"h.listenAbove()\n", "if !planted(9) {\n\t\th.listenAbove()\n\t}\n"},
}

// TestExploreFindsWhatIsPlanted builds a copy of the package with the bugs in
// it, each behind a switch, and lets it explore with one of them at a time.
func TestExploreFindsWhatIsPlanted(t *testing.T) {
	dir := t.TempDir()
	for _, from := range []string{"go.mod", "go.sum", "async", "internal"} {
		copySources(t, filepath.Join("..", from), filepath.Join(dir, from))
	}
	engine := filepath.Join(dir, "async", "internal", "tree")
	for _, p := range plants {
		p.plant(t, engine)
	}
	write(t, filepath.Join(dir, "async", "planted_test.go"), `package async

import "testing"

func TestNothing(*testing.T) {}
`)
	write(t, filepath.Join(engine, "planted.go"), `package tree

import "os"

var switchedOn = os.Getenv("PLANTED")

func planted(n int) bool { return switchedOn == string(rune('0'+n)) }
`)
	binary := filepath.Join(dir, "async.test")
	build := exec.Command("go", "test", "-c", "-tags", "explore", "-o", binary, "./async")
	build.Dir, build.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, p := range plants {
		t.Run(p.what, func(t *testing.T) {
			run := exec.Command(binary, "-test.run", "^TestExplore$", "-test.timeout", "20m")
			run.Dir = filepath.Join(dir, "async")
			run.Env = append(os.Environ(), fmt.Sprint("PLANTED=", i+1), "EXPLORE_SEED=4", "EXPLORE_TIME=15m") // most take a second
			out, err := run.CombinedOutput()
			found := regexp.MustCompile(`(?m)explore_test.go:\d+: (.*)|schedule \d+ of .*`).FindAllString(string(out), 2)
			if err == nil {
				t.Fatalf("it was not found")
			}
			if len(found) == 0 { // the process has ended with it, or the engine spins
				found = regexp.MustCompile(`(?m)^(panic|fatal error): .*`).FindAllString(string(out), 1)
			}
			t.Logf("%.200s", strings.Join(found, "; "))
		})
	}
}

// plant replaces the text in the one file of dir that has it.
func (p plant) plant(t *testing.T, dir string) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	places := 0
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(src), p.text); n > 0 {
			places += n
			write(t, name, strings.Replace(string(src), p.text, p.by, 1))
		}
	}
	if places != 1 {
		t.Fatalf("%s: the text to replace is in the engine %d times: adapt the table to the code", p.what, places)
	}
}

// copySources copies the Go files that the explorer needs.
func copySources(t *testing.T, from, to string) {
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name := d.Name()
		mine := strings.HasPrefix(name, "explore_") && name != "explore_planted_test.go"
		if strings.HasSuffix(name, "_test.go") && !mine || !strings.HasPrefix(name, "go.") && !strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, ".s") {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		below, _ := filepath.Rel(from, path)
		write(t, filepath.Join(to, below), string(src))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, name, text string) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
