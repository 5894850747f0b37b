//go:build unix

package proc

import (
	"bytes"
	"context"
	"io"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// BenchmarkShortCommands runs a command that ends at once, by Run and by package
// os/exec, in turns: the ratio of their times is reported, as the machine's own
// noise is in both. CPU is that of this process, and of the commands.
//
//	go test -run '^$' -bench ShortCommands -benchtime 1000x ./proc
func BenchmarkShortCommands(b *testing.B) {
	for name, output := range map[string]func() io.Writer{
		"no output": func() io.Writer { return nil },
		"output":    func() io.Writer { return new(bytes.Buffer) },
	} {
		b.Run(name, func(b *testing.B) {
			args := []string{"true"}
			if name == "output" {
				args = []string{"echo", "hello"}
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var ours, theirs cost
			for b.Loop() {
				ours.add(b, func() error {
					out := output()
					_, err := Run(ctx, Command{Args: args, Stdout: out, Stderr: out})
					return err
				})
				theirs.add(b, func() error {
					out := output()
					cmd := exec.CommandContext(ctx, args[0], args[1:]...)
					cmd.Stdout, cmd.Stderr = out, out
					cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
					return cmd.Run()
				})
			}
			b.ReportMetric(0, "ns/op") // of both together: it says nothing
			b.ReportMetric(float64(ours.wall.Microseconds())/float64(b.N), "µs/Run")
			b.ReportMetric(float64(theirs.wall.Microseconds())/float64(b.N), "µs/exec")
			b.ReportMetric(float64(ours.wall)/float64(theirs.wall), "wall-ratio")
			b.ReportMetric(float64(ours.self)/float64(theirs.self), "cpu-ratio")
			b.ReportMetric(float64(ours.self+ours.commands)/float64(theirs.self+theirs.commands), "cpu-ratio-with-commands")
		})
	}
}

// A cost is the time that something has taken: on the clock, and of processors,
// in this process and in the commands that it has run.
type cost struct{ wall, self, commands time.Duration }

func (c *cost) add(b *testing.B, f func() error) {
	begin, self, commands := time.Now(), used(syscall.RUSAGE_SELF), used(syscall.RUSAGE_CHILDREN)
	if err := f(); err != nil {
		b.Fatal(err)
	}
	c.wall += time.Since(begin)
	c.self += used(syscall.RUSAGE_SELF) - self
	c.commands += used(syscall.RUSAGE_CHILDREN) - commands
}

func used(by int) time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(by, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
