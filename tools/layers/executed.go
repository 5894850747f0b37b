package main

import (
	"fmt"
	"go/ast"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"

	"golang.org/x/tools/cover"
)

// A played scene says what of the house it has executed.
type played struct {
	Scene     string   `json:"scene"`
	Functions []string `json:"functions"` // in every round
	Files     int      `json:"files"`     // of these
	Sometimes []string `json:"sometimes"` // in some rounds and not in all

	blocks map[block]bool // in every round
}

// A block is a piece of code that is executed as a whole or not at all.
type block struct {
	file *file
	cover.ProfileBlock
}

// newPlayed sums up functions, which are named with their files.
func newPlayed(scene string, functions []string) *played {
	p := &played{Scene: scene, Functions: functions}
	files := map[string]bool{}
	for _, f := range functions {
		files[fileOfFunction(f)] = true
	}
	p.Files = len(files)
	return p
}

// play builds the program in folder with coverage of h, runs it, and reads what
// each of its scenes has executed.
func play(h *house, folder string) (map[string]*played, error) {
	tmp, err := os.MkdirTemp("", "layers")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	program, out, rest := filepath.Join(tmp, "scenes.exe"), filepath.Join(tmp, "out"), filepath.Join(tmp, "rest")
	if err := os.Mkdir(rest, 0o777); err != nil {
		return nil, err
	}
	// A program can write its counters only if its own package is covered, too.
	covered := "-coverpkg=.," + h.top().PkgPath + "/..."
	if err := command(folder, nil, "go", "build", "-cover", "-covermode=atomic", covered, "-o", program, "."); err != nil {
		return nil, err
	}
	if err := command(folder, []string{"GOCOVERDIR=" + rest}, program, out); err != nil {
		return nil, err
	}
	return readScenes(h, out)
}

// command runs a program in folder, with env beside its environment, and returns
// its output if it fails.
func command(folder string, env []string, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = folder
	cmd.Env = append(append(os.Environ(), "GOWORK=off"), env...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, text)
	}
	return nil
}

// readScenes reads the counters in out, where each scene has a folder, and in
// it each round.
func readScenes(h *house, out string) (map[string]*played, error) {
	rounds, err := filepath.Glob(filepath.Join(out, "*", "*"))
	if err != nil {
		return nil, err
	}
	scenes := map[string][]map[block]bool{}
	for _, round := range rounds {
		blocks, err := readBlocks(h, round)
		if err != nil {
			return nil, err
		}
		scene := filepath.Base(filepath.Dir(round))
		scenes[scene] = append(scenes[scene], blocks)
	}
	all := map[string]*played{}
	for scene, rounds := range scenes {
		all[scene] = sumUp(h, scene, rounds)
	}
	return all, nil
}

// readBlocks reads which blocks of h were executed.
func readBlocks(h *house, folder string) (map[block]bool, error) {
	text := folder + ".txt"
	if err := command(".", nil, "go", "tool", "covdata", "textfmt", "-i="+folder, "-o="+text); err != nil {
		return nil, err
	}
	profiles, err := cover.ParseProfiles(text)
	if err != nil {
		return nil, err
	}
	covered := map[string]*file{}
	for _, f := range h.structure() {
		covered[path.Join(f.pkg.PkgPath, path.Base(f.name))] = f
	}
	blocks := map[block]bool{}
	for _, profile := range profiles {
		f := covered[profile.FileName]
		for _, b := range profile.Blocks {
			if f != nil && b.Count > 0 {
				b.Count = 1 // however often
				blocks[block{f, b}] = true
			}
		}
	}
	return blocks, nil
}

// sumUp tells what is executed in every round from what is only in some.
func sumUp(h *house, scene string, rounds []map[block]bool) *played {
	blocks, times := map[block]int{}, map[string]int{}
	for _, round := range rounds {
		functions := map[string]bool{}
		for b := range round {
			blocks[b]++
			if fn := b.function(h); fn != nil {
				functions[b.file.name+" "+functionName(fn)] = true
			}
		}
		for f := range functions {
			times[f]++
		}
	}
	var always, sometimes []string
	for _, f := range slices.Sorted(maps.Keys(times)) {
		if times[f] == len(rounds) {
			always = append(always, f)
		} else {
			sometimes = append(sometimes, f)
		}
	}
	p := newPlayed(scene, always)
	p.Sometimes, p.blocks = sometimes, map[block]bool{}
	for b, n := range blocks {
		p.blocks[b] = n == len(rounds)
	}
	return p
}

// function is the declared function in which b stands, or around the literal in
// which b stands; nil if that is the value of a variable.
func (b block) function(h *house) *ast.FuncDecl {
	for _, decl := range b.file.syntax.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		first, last := h.fset.Position(fn.Pos()), h.fset.Position(fn.End())
		if first.Line <= b.StartLine && b.EndLine <= last.Line {
			return fn
		}
	}
	return nil
}
