//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A fleet is the worker and producer processes of a world. One that ends is replaced.
type fleet struct {
	dir   string // of the journals
	url   string
	kills bool

	processes int // that there are to be, two fifths of them producers

	mu      sync.Mutex
	changed *sync.Cond
	all     []*child
	wanted  map[string]int // by role
	made    int
	seeds   *rand.Rand
	skewed  bool // new ones have clocks that are wrong
	clock   int  // of new ones, if not skewed
	faults  []string
}

// A child is one process.
type child struct {
	*role
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	stderr  string // a file
	stopped bool   // by SIGSTOP
	told    bool   // to end
}

func newFleet(dir, url string, processes int, seed uint64, kills bool) *fleet {
	f := &fleet{dir: dir, url: url, kills: kills, processes: processes, wanted: map[string]int{}, seeds: rand.New(rand.NewPCG(seed, 7))}
	f.changed = sync.NewCond(&f.mu)
	return f
}

func (f *fleet) fault(format string, args ...any) {
	f.faults = append(f.faults, fmt.Sprintf(format, args...))
}

// fill starts the processes of a world, and has those that end replaced.
func (f *fleet) fill() error {
	f.mu.Lock()
	f.wanted["producer"] = max(1, f.processes*2/5)
	f.wanted["worker"] = f.processes - f.wanted["producer"]
	f.mu.Unlock()
	return f.refill()
}

// refill starts the processes that are missing: none of a role that is being ended.
func (f *fleet) refill() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.fillLocked("worker"), f.fillLocked("producer"))
}

func (f *fleet) fillLocked(do string) error {
	for f.countLocked(do) < f.wanted[do] {
		if err := f.startLocked(do); err != nil {
			return err
		}
	}
	return nil
}

func (f *fleet) countLocked(do string) (n int) {
	for _, c := range f.all {
		if c.Do == do && !c.told {
			n++
		}
	}
	return n
}

func (f *fleet) startLocked(do string) error {
	f.made++
	r := &role{Do: do, Name: fmt.Sprintf("%s%03d", do, f.made), URL: f.url, Dir: f.dir, Seed: f.seeds.Uint64(), Kills: f.kills, Clock: f.clock}
	if strings.HasPrefix(r.URL, "redis:") {
		r.URL += "?client_name=" + r.Name
	}
	if f.skewed && f.seeds.IntN(3) == 0 {
		r.Clock = f.seeds.IntN(1201) - 600
	}
	c, err := startChild(r)
	if err != nil {
		return err
	}
	f.all = append(f.all, c)
	go f.watch(c)
	return nil
}

// startChild starts this program in a role.
func startChild(r *role) (*child, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	c := &child{role: r, cmd: exec.Command("/proc/self/exe"), stderr: filepath.Join(r.Dir, r.Name+".stderr")}
	c.cmd.Env = append(os.Environ(), childEnv+"="+string(text), "GORACE=halt_on_error=1")
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := os.Create(c.stderr)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }()
	c.cmd.Stderr, c.cmd.Stdout = out, out
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return c, c.cmd.Start()
}

// watch waits for the end of c, and has it replaced.
func (f *fleet) watch(c *child) {
	_ = c.cmd.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = slices.DeleteFunc(f.all, func(other *child) bool { return other == c })
	ws := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	early := c.told && ws.Signaled() && ws.Signal() == syscall.SIGTERM // before it could listen
	killed := ws.Signaled() && ws.Signal() == syscall.SIGKILL
	if !early && !killed && (!c.told || ws.ExitStatus() != 0) {
		f.fault("%s has ended by itself: %v: %s", c.Name, c.cmd.ProcessState, lastOf(c.stderr))
	}
	if err := f.fillLocked(c.Do); err != nil {
		f.fault("%s: %v", c.Do, err)
	}
	f.changed.Broadcast()
}

// lastOf returns the end of a file, or the stacks in it.
func lastOf(name string) string {
	b, _ := os.ReadFile(name)
	for _, mark := range []string{"DATA RACE", "SIGQUIT: quit", "fatal error:", "panic:"} {
		if i := bytes.Index(b, []byte(mark)); i >= 0 {
			return string(b[i:min(len(b), i+4000)])
		}
	}
	return string(b[max(0, len(b)-4000):])
}

// pick returns one that runs, by chance; nil if there is none.
func (f *fleet) pick(rng *rand.Rand, do string) *child {
	f.mu.Lock()
	defer f.mu.Unlock()
	var some []*child
	for _, c := range f.all {
		if c.Do == do && !c.stopped && !c.told {
			some = append(some, c)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return some[rng.IntN(len(some))]
}

// of returns the first child of which is says so; nil if there is none.
func (f *fleet) of(is func(*child) bool) *child {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := slices.IndexFunc(f.all, is); i >= 0 {
		return f.all[i]
	}
	return nil
}

// signal sends a signal, and reports whether c was there.
func (f *fleet) signal(c *child, s syscall.Signal) bool {
	if c == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch s {
	case syscall.SIGSTOP:
		c.stopped = true
	case syscall.SIGCONT:
		c.stopped = false
	case syscall.SIGTERM:
		c.told = true
	}
	return slices.Contains(f.all, c) && c.cmd.Process.Signal(s) == nil
}

// setClock puts the clock of c forward by some seconds.
func (f *fleet) setClock(c *child, seconds int) bool {
	if c == nil {
		return false
	}
	_, err := fmt.Fprintf(c.stdin, "clock %d\n", seconds)
	return err == nil
}

// setClocks puts the clocks of all, and of those to come, forward.
func (f *fleet) setClocks(seconds int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clock, f.skewed = seconds, false
	for _, c := range f.all {
		f.setClock(c, seconds)
	}
}

// end tells all of a role to end, or kills them, and waits until they have.
func (f *fleet) end(do string, s syscall.Signal) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wanted[do] = 0
	late := false
	timer := time.AfterFunc(2*time.Minute, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		late = true
		f.changed.Broadcast()
	})
	defer timer.Stop()
	for _, c := range f.all {
		if c.Do == do {
			c.told = true
			_ = c.cmd.Process.Signal(syscall.SIGCONT)
			_ = c.cmd.Process.Signal(s)
		}
	}
	for !late && slices.ContainsFunc(f.all, func(c *child) bool { return c.Do == do }) {
		f.changed.Wait()
	}
	if late {
		for _, c := range f.all {
			_ = c.cmd.Process.Signal(syscall.SIGQUIT) // its stacks go to stderr
		}
		return fmt.Errorf("a %s that was told to end has not ended after two minutes", do)
	}
	return nil
}

// killAll ends what is left of the fleet.
func (f *fleet) killAll() error {
	return errors.Join(f.end("producer", syscall.SIGKILL), f.end("worker", syscall.SIGKILL))
}
