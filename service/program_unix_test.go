//go:build unix

package service_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	sigint  = syscall.SIGINT
	sigterm = syscall.SIGTERM
)

func TestTheExitStatusOfAProgramThatEndsByItself(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		stderr string
	}{
		"nil":        {0, ""},
		"error":      {1, "no bed\n"},
		"status 7":   {7, "night: status of its own: 7\n"},
		"status 256": {1, "status of its own: 256\n"},
		"Goexit":     {1, "async: task called runtime.Goexit\n"},
		"detached":   {1, "audit failed\n"},
		"patient":    {0, ""}, // Grace and Delay together are more than a Duration holds
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, name)
			assert.Equal(t, test.status, p.wait())
			assert.Equal(t, test.stderr, p.said())
		})
	}
}

func TestAPanicIsToldWithItsStackAndStatus2(t *testing.T) {
	for name, frames := range map[string][]string{
		"panic":         {"panic: boom\n", "service_test.init"},
		"task panics":   {"async: panic in service bad/", "boom in a task\n", "service_test.taskPanics"},
		"panics, stuck": {"async: panic in service bad: boom", "service deaf", "service_test.panicsAndHangs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, name)
			assert.Equal(t, 2, p.wait())
			for _, text := range frames {
				assert.Contains(t, p.said(), text)
			}
			if name == "task panics" {
				assert.Contains(t, p.stdout.String(), "drained", "the others are drained first")
			}
		})
	}
}

func TestACleanStopIsStatus0AndSaysNothing(t *testing.T) {
	for _, sig := range []syscall.Signal{sigint, sigterm} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			p := start(t, "clean")
			p.waitFor("ready")
			p.signal(sig)
			assert.Equal(t, 0, p.wait())
			assert.Empty(t, p.said())
			assert.Contains(t, p.stdout.String(), "told to stop: stopped by signal: "+sig.String()+"\n")
		})
	}
}

// A service that was told to stop has not failed, but what it has to say is not lost.
func TestWhatAServiceSaysThatWasToldToStopIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		said   string
	}{
		"unwritten by a task": {0, "service mailer: 7 mails were not sent: context canceled\n"},
		"unwritten":           {0, "service saver: 12 rows were not written: context canceled\n"},
		"unwritten, bad": {1, "service saver: 12 rows were not written: context canceled\n" +
			"service.test: service drainer: drain: cannot flush\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, name)
			p.waitFor("ready")
			if name == "unwritten, bad" {
				p.waitFor("ready")
			}
			p.signal(sigterm)
			assert.Equal(t, test.status, p.wait())
			assert.Equal(t, test.said, p.said())
		})
	}
}

func TestTheThirdSignalTellsWhatServicesHaveSaid(t *testing.T) {
	p := start(t, "unwritten, stuck")
	p.waitFor("ready")
	p.signal(sigterm)
	p.waitFor("cancelled")
	p.signal(sigint)
	p.waitFor("hurried")
	p.signal(sigterm)
	assert.Equal(t, 143, p.wait())
	assert.Contains(t, p.said(), "still draining: service deaf for ")
	assert.Contains(t, p.said(), "\nservice.test: service saver: 12 rows were not written: context canceled\n")
}

func TestASignalThatCutsTheWorkShortIsStatus128AndItsNumber(t *testing.T) {
	for name, stderr := range map[string]string{
		"waits":   "stopped by signal: ",
		"says it": "stopped by signal: ",
	} {
		for sig, status := range map[syscall.Signal]int{sigint: 130, sigterm: 143} {
			t.Run(name+", "+sig.String(), func(t *testing.T) {
				t.Parallel()
				p := start(t, name)
				p.waitFor("ready")
				p.signal(sig)
				assert.Equal(t, status, p.wait())
				assert.Equal(t, stderr+sig.String()+"\n", p.said())
			})
		}
	}
}

func TestASignalDuringTheStart(t *testing.T) {
	p := start(t, "boot")
	p.waitFor("booting")
	p.signal(sigterm)
	assert.Equal(t, 0, p.wait())
	said := strings.ReplaceAll(p.stdout.String(), "ready\n", "") // that of the first is written beside the start of the next
	assert.Contains(t, said, "cancelled: stopped by signal: terminated\ndrained\n", "in reverse; what was not ready has nothing to drain")
	assert.NotContains(t, p.stdout.String(), "although")
	assert.Empty(t, p.said())
}

func TestOneSignalDrains(t *testing.T) {
	p := start(t, "drain")
	p.waitFor("ready")
	p.signal(sigterm)
	p.waitFor("waiting")
	p.tell()
	assert.Equal(t, 0, p.wait())
	assert.Contains(t, p.stdout.String(), "told\n")
	assert.Empty(t, p.said())
}

func TestWithDebounceSignalsThatComeTogetherDrain(t *testing.T) {
	p := start(t, "debounced")
	p.waitFor("ready")
	p.signal(sigterm)
	p.waitFor("waiting")
	p.signal(sigterm)
	p.signal(sigint)
	p.tell()
	assert.Equal(t, 0, p.wait())
	assert.Contains(t, p.stdout.String(), "told\n")
	assert.Empty(t, p.said())
}

func TestAnErrorInTheDrainIsTheError(t *testing.T) {
	p := start(t, "drain, err")
	p.waitFor("ready")
	p.signal(sigterm)
	assert.Equal(t, 1, p.wait())
	assert.Equal(t, "service drainer: drain: cannot flush\n", p.said())
}

func TestTheSecondSignalCancels(t *testing.T) {
	for first, status := range map[syscall.Signal]int{sigint: 130, sigterm: 143} {
		t.Run(first.String(), func(t *testing.T) {
			t.Parallel()
			p := start(t, "drain")
			p.waitFor("ready")
			p.signal(first)
			p.waitFor("waiting")
			p.signal(sigterm)
			assert.Equal(t, status, p.wait())
			assert.Contains(t, p.stdout.String(), "cut\n")
			assert.Regexp(t, "^service: the drain was cut short: stopped by signal: terminated; it was for: stopped by signal: "+first.String()+
				`; still draining: service drainer for [0-9.a-zµ]+ \(Run, Drain\)\n$`, p.said())
		})
	}
}

func TestTheEndOfTheGraceIsStatus128AndTheNumber(t *testing.T) {
	for _, name := range []string{"grace", "gives up"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, name)
			p.waitFor("ready")
			p.signal(sigterm)
			assert.Equal(t, 143, p.wait())
			assert.Contains(t, p.said(), "context deadline exceeded")
			if name == "gives up" {
				assert.Contains(t, p.said(), "service deaf (aborting)")
				assert.Contains(t, p.said(), "service_test.givesUp")
				assert.Equal(t, 1, strings.Count(p.said(), "still running"), "named once")
			}
		})
	}
}

func TestTheThirdSignalEndsTheProgramWhateverHangs(t *testing.T) {
	for name, said := range map[string]string{
		"hangs": `^$`, // run, hooks, detached tasks, and what hears of the signals; there is no service
		"hangs, service": `(?s)^the third signal, interrupt, ends what is still draining: service deaf for [0-9.a-zµ]+\n` +
			`\tservice deaf: Run \((aborting|running)\)\n\t\tgoroutine .*hangsService.*` +
			`\tservice deaf: Drain \((aborting|running)\)\n\t\tgoroutine .*hangsService`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, name)
			p.waitFor("ready")
			p.signal(sigterm)
			p.waitFor("cancelled")
			p.signal(sigterm)
			p.waitFor("hurried")
			p.signal(sigint)
			assert.Equal(t, 130, p.wait(), "it has ended itself, with the number of the third")
			assert.Regexp(t, said, p.said())
		})
	}
}

func TestTheThirdSignalEndsAProgramThatHangsAsItSaysWhatHasFailed(t *testing.T) {
	p := start(t, "hangs, text")
	p.waitFor("ready")
	p.signal(sigterm)
	p.signal(sigint) // another one: two of a kind may become one
	p.waitFor("hurried")
	p.signal(sigterm)
	assert.Equal(t, 143, p.wait())
}

func TestTheThirdSignalDoesNotHideWhatHasFailed(t *testing.T) {
	for name, stderr := range map[string]string{
		"hangs, failed": "service bad: root cause\n",
		"hangs, noted":  "", // what it has failed with cannot be told
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, name)
			p.waitFor("ready") // it drains: so the failure is known
			p.signal(sigterm)
			p.waitFor("cancelled")
			p.signal(sigterm)
			p.waitFor("hurried")
			p.signal(sigterm)
			assert.Equal(t, 143, p.wait())
			assert.Contains(t, p.said(), "still draining: service deaf for ")
			_, after, _ := strings.Cut(p.said(), "service.test: ") // of the second line of the program
			assert.Equal(t, stderr, after)
		})
	}
}

func TestALateSignalDoesNotPanic(t *testing.T) {
	p := start(t, "late")
	p.waitFor("waiting")
	p.signal(sigterm)
	p.waitFor("run returns")
	p.signal(sigint) // while Shutdown waits: it is cut short
	assert.Equal(t, 143, p.wait())
	assert.Contains(t, p.stdout.String(), "cut\n")
	assert.Contains(t, p.said(), "async: shutting down")
}

func TestABoundPortFailsFirst(t *testing.T) {
	l := listen(t)
	defer l.Close()
	p := start(t, "bound", addressVariable+"="+l.Addr().String())
	assert.Equal(t, 1, p.wait())
	assert.Contains(t, p.said(), "address already in use")
	assert.NotContains(t, p.stdout.String(), "started", "nothing was started")
}

func TestTwoRunsHearTheSameSignal(t *testing.T) {
	p := start(t, "two runs")
	p.waitFor("ready")
	p.waitFor("ready")
	p.signal(sigterm)
	assert.Equal(t, 0, p.wait())
	assert.Equal(t, 2, strings.Count(p.stdout.String(), "drained\n"))
}

func TestHurryIsDoneAtTheSecondSignal(t *testing.T) {
	p := start(t, "hurry")
	p.waitFor("ready")
	p.signal(sigterm)
	assert.Equal(t, "cleaning up, hurried: <nil>", p.waitFor("cleaning"))
	p.signal(sigint)
	assert.Equal(t, 0, p.wait(), "it has done what there was to do")
	assert.Contains(t, p.stdout.String(), "hurried: stopped by signal: interrupt\n")
}

func TestMainIsCalledOnce(t *testing.T) {
	p := start(t, "twice")
	assert.Equal(t, 2, p.wait())
	assert.Contains(t, p.said(), "service: Main was called twice")
}

func TestARequestIsAnsweredAfterTheSignal(t *testing.T) {
	p := start(t, "web")
	address := strings.TrimPrefix(p.waitFor("serving "), "serving ")
	type answer struct {
		body string
		err  error
	}
	answers := make(chan answer, 1)
	client := newClient(t)
	go func() {
		body, err := get(client, "http://"+address)
		answers <- answer{body, err}
	}()
	p.waitFor("waiting")
	p.signal(sigterm)
	p.tell()
	assert.Equal(t, 0, p.wait())
	got := <-answers
	require.NoError(t, got.err)
	assert.Equal(t, "finished", got.body)
}
