//go:build unix

package runner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
	"github.com/ambit-go/ambit/clitest"
)

// serve is a service, run as a program of its own: serve ADDRESS PIDFILE. It
// says hello to whoever connects.
func serve() {
	time.Sleep(50 * time.Millisecond)                                                     // services are not ready at once
	if err := os.WriteFile(os.Args[2], fmt.Append(nil, os.Getpid()), 0o644); err != nil { // there when the service answers
		os.Exit(1)
	}
	l, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("listening")
	for {
		conn, err := l.Accept()
		if err != nil {
			os.Exit(1)
		}
		_, _ = fmt.Fprintln(conn, "hello")
		_ = conn.Close()
	}
}

// freeAddress returns an address that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", clitest.FreePort(t))
}

// with gives a job a service and the variables ADDRESS and PORT.
func with(address, command string, changes ...func(*pipeline.Service)) func(*pipeline.Job) {
	_, port, _ := net.SplitHostPort(address)
	s := pipeline.Service{Name: "db", Command: command, Address: address, Timeout: 30 * time.Second}
	for _, change := range changes {
		change(&s)
	}
	return func(j *pipeline.Job) {
		j.Variables = append(j.Variables, pipeline.Variable{Name: "ADDRESS", Value: address}, pipeline.Variable{Name: "PORT", Value: port})
		s := s
		s.Variables = j.Variables
		j.Services = append(j.Services, s)
	}
}

const (
	server = "exec serve $ADDRESS pid"
	ask    = `read -r line < /dev/tcp/127.0.0.1/$PORT; echo "it says $line"`
)

func TestAServiceIsReadyStaysAndIsStopped(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	f := prepare(t, nil,
		jobOf("a", ask, with(address, server), func(j *pipeline.Job) { j.After = []string{ask} }),
		jobOf("b", ask, with("127.0.0.1:$PORT", server), func(j *pipeline.Job) { // waits for the port of a
			j.Variables = append(j.Variables, pipeline.Variable{Name: "ADDRESS", Value: address})
			_, port, _ := net.SplitHostPort(address)
			for i := range j.Variables {
				if j.Variables[i].Name == "PORT" {
					j.Variables[i].Value = port
				}
			}
			j.Services[0].Variables = j.Variables
		}),
	)
	require.NoError(t, f.run())
	f.is("a", plan.Succeeded, plan.None, "")
	f.is("b", plan.Succeeded, plan.None, "")
	assert.Contains(t, f.log("a"), "it says hello\ncirunner: after_script\n$ read")
	assert.Equal(t, 2, countOf(f.log("a"), "it says hello\n"), "also in after_script")
	assert.Error(t, dial(t.Context(), address), "it is stopped")
	log, err := os.ReadFile(f.Work.Path("logs", "001-a.db.log"))
	require.NoError(t, err)
	assert.Equal(t, "listening\n", string(log))
}

func countOf(s, part string) (n int) {
	for i := 0; i+len(part) <= len(s); i++ {
		if s[i:i+len(part)] == part {
			n++
		}
	}
	return n
}

func TestWhatBecomesOfAServiceThatFails(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	short := func(s *pipeline.Service) { s.Timeout = 300 * time.Millisecond }
	ill := func(s *pipeline.Service) {
		s.Health = pipeline.Health{Command: "! test -e ill", Interval: 20 * time.Millisecond, Timeout: time.Minute, Retries: 2}
	}
	f := prepare(t, func(c *Config) { c.Concurrent = 4 },
		jobOf("killed", "kill -KILL $(cat pid); sleep 1000", with(freeAddress(t), server), func(j *pipeline.Job) {
			j.After = []string{"echo after $CI_JOB_STATUS"}
		}),
		jobOf("ends", "sleep 1000", with("", "echo bye; exit 0")),
		jobOf("never starts", "echo never", with(freeAddress(t), "exit 3")),
		jobOf("never answers", "echo never", with(freeAddress(t), "exec sleep 1000", short)),
		jobOf("taken", "echo never", with(taken.Addr().String(), server)),
		jobOf("ill", "touch ill; sleep 1000", with(freeAddress(t), server, ill)),
		jobOf("well", "sleep 0.2", with(freeAddress(t), server, ill)),
	)
	require.NoError(t, f.run())
	f.is("killed", plan.Failed, pipeline.SystemFailure, "service db: has ended: service-db: ended by SIGKILL")
	assert.Contains(t, f.log("killed"), "after failed\n")
	f.is("ends", plan.Failed, pipeline.SystemFailure, "service db: has ended: exit status 0")
	f.is("never starts", plan.Failed, pipeline.SystemFailure, "service db: has ended: service-db: exit status 3")
	f.is("never answers", plan.Failed, pipeline.SystemFailure, "service db: does not answer within 300ms: dial tcp")
	f.is("taken", plan.Failed, pipeline.SystemFailure, "is in use by somebody else")
	f.is("ill", plan.Failed, pipeline.SystemFailure, "service db: is ill: health-db: exit status 1")
	f.is("well", plan.Succeeded, plan.None, "")
	for _, name := range []string{"never starts", "never answers", "taken"} {
		assert.NotContains(t, f.log(name), "echo never", "%s: the script does not start", name)
	}
}

// A service outlives the script that is cancelled, for the after_script, but
// nothing that is aborted.
func TestServicesAndStops(t *testing.T) {
	t.Parallel()
	t.Run("cancel", func(t *testing.T) {
		f := prepare(t, nil, jobOf("a", "echo up; sleep 1000", with(freeAddress(t), server), func(j *pipeline.Job) { j.After = []string{ask} }))
		require.NoError(t, f.run(func(ctx context.Context) {
			f.when("a", "up", func() { f.Cancel(ctx, errors.New("enough")) })
		}))
		f.is("a", plan.Canceled, plan.Stopped, "enough")
		assert.Contains(t, f.log("a"), "it says hello\n")
	})
	t.Run("cancel while waiting", func(t *testing.T) {
		f := prepare(t, nil, jobOf("a", "echo never", with(freeAddress(t), "echo up; sleep 1000")))
		require.NoError(t, f.run(func(ctx context.Context) {
			f.when("a", "up", func() { f.Cancel(ctx, errors.New("enough")) })
		}))
		f.is("a", plan.Canceled, plan.Stopped, "enough")
		assert.NotContains(t, f.log("a"), "echo never")
	})
	t.Run("abort", func(t *testing.T) {
		stubborn := "trap '' TERM; serve $ADDRESS pid & wait; sleep 1000"
		f := prepare(t, func(c *Config) { c.Grace = time.Hour }, jobOf("a", "echo up; sleep 1000", with(freeAddress(t), stubborn)))
		aborted := errors.New("at once")
		require.ErrorIs(t, f.run(func(ctx context.Context) {
			f.when("a", "up", func() { async.Go(ctx, func(context.Context) error { return aborted }) })
		}), aborted)
		f.is("a", plan.Canceled, plan.Stopped, "aborted: at once")
	})
}
