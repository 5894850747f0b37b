package lockstest

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
)

// A process is a child.
type process struct {
	name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	once  sync.Once
	err   error
	gone  bool // it was killed, and is not waited for
}

// start starts one more process.
func (r *rowRun) start() *process {
	r.t.Helper()
	config := r.config
	config.Client = fmt.Sprintf("p%d", len(r.children))
	text, err := json.Marshal(config)
	require.NoError(r.t, err)
	p := &process{name: config.Client, cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	p.cmd.Stderr = os.Stderr
	p.stdin, err = p.cmd.StdinPipe()
	require.NoError(r.t, err)
	require.NoError(r.t, p.cmd.Start())
	r.t.Cleanup(func() { p.kill() })
	r.children = append(r.children, p)
	return p
}

// kill ends a process as a crash does.
func (p *process) kill() {
	p.once.Do(func() {
		_ = p.cmd.Process.Kill()
		p.err = p.cmd.Wait()
	})
}

// kill kills all processes.
func (r *rowRun) kill() {
	for _, p := range r.children {
		p.kill()
	}
}

// end has all processes that live end by themselves.
func (r *rowRun) end() {
	r.t.Helper()
	for _, p := range r.children {
		_ = p.stdin.Close()
	}
	for _, p := range r.children {
		p.once.Do(func() {
			late := time.AfterFunc(time.Minute, func() { _ = p.cmd.Process.Kill() })
			p.err = p.cmd.Wait()
			if !late.Stop() {
				r.t.Errorf("%s did not end when it was asked to", p.name)
			}
			require.NoError(r.t, p.err, p.name)
		})
	}
}

// crash kills a process and takes it out of those that are waited for.
func (*rowRun) crash(p *process) {
	p.kill()
	p.gone = true
}
