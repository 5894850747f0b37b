//go:build unix

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/clitest"
)

func TestMain(m *testing.M) {
	testscript.Main(clitest.LeakChecked(m), map[string]func(){"sshrun": main})
}

// forever ends a script that goes on until a signal; a trap runs at once. It is
// the child that says "ready", when it has become a program of its own: a fork
// of bash that has not yet loses a TERM that the script traps, sleeps on, and
// keeps the group from ending until the grace is over.
const forever = "; bash -c 'echo ready; exec sleep 600' & wait $!; while :; do sleep 600 & wait $!; done"

// A machine is a server with a user, and the files that a client needs.
type machine struct {
	t        *testing.T
	address  string
	hostKeys []ssh.Signer
	identity string // the user's key
	known    string // known_hosts
}

func newMachine(t *testing.T, flaw flaw) *machine {
	t.Helper()
	m := &machine{t: t}
	_, user, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	public, err := ssh.NewPublicKey(user.Public())
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(user, "")
	require.NoError(t, err)
	_, first, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	second, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	for _, key := range []any{first, second} {
		signer, err := ssh.NewSignerFromKey(key)
		require.NoError(t, err)
		m.hostKeys = append(m.hostKeys, signer)
	}
	server := &sshServer{HostKeys: m.hostKeys, User: "ci", Key: public, flaw: flaw}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	served := async.Start(ctx, func(ctx context.Context) error { return server.Serve(ctx, l) })
	t.Cleanup(func() {
		stop()
		_, _ = served.Wait(context.Background())
	})
	m.address = l.Addr().String()
	m.identity = m.file("identity", string(pem.EncodeToMemory(block)))
	m.known = m.file("known_hosts", knownhosts.Line([]string{m.address}, m.hostKeys[0].PublicKey())+"\n")
	return m
}

func (m *machine) file(name, text string) string {
	m.t.Helper()
	path := filepath.Join(m.t.TempDir(), name)
	require.NoError(m.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// run starts the program with a script.
func (m *machine) run(script string, flags ...string) *clitest.Process {
	m.t.Helper()
	args := append([]string{"-identity", m.identity, "-known-hosts", m.known, "-connect-timeout", "1m", "-keepalive", "1m"}, flags...)
	return clitest.Start(m.t, nil, "sshrun", append(args, "ci@"+m.address, m.file("script", script))...)
}

func TestTheEndOfTheScriptIsReported(t *testing.T) {
	m := newMachine(t, "")
	for _, test := range []struct {
		script, stdout, stderr string
		status                 int
	}{
		{"echo out; echo err >&2", "out\n", "err\n", 0},
		{"exit 3", "", "sshrun: Process exited with status 3\n", 3},
		{"exit 255", "", "sshrun: Process exited with status 255\n", 255},
		{"kill -SEGV $$", "", "sshrun: Process exited with status 139 from signal SEGV\n", 139},
		{"cat\necho after", "after\n", "", 0}, // which does not read the rest of the script
		{"head -c 4194304 /dev/zero | tr '\\0' x", strings.Repeat("x", 4<<20), "", 0},
	} {
		p := m.run(test.script)
		assert.Equal(t, test.status, p.Wait(), test.script)
		assert.Equal(t, test.stdout, p.Stdout())
		assert.Equal(t, test.stderr, p.Stderr())
	}
}

func TestASignalIsPassedOnAndBothEndsAreTold(t *testing.T) {
	m := newMachine(t, "")
	for sig, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		for _, own := range []int{0, 7} {
			p := m.run(fmt.Sprintf("echo pid $$; trap 'echo cleaning up; exit %d' TERM", own) + forever)
			p.WaitFor("ready")
			p.Signal(sig)
			assert.Equal(t, want, p.Wait())
			assert.Contains(t, p.Stdout(), "cleaning up\n")
			assert.Regexp(t, fmt.Sprintf("^sshrun: stopped by signal: %v; .*exited with status %d\n$", sig, own), p.Stderr())
			assert.Empty(t, clitest.InGroup(t, clitest.Number(t, p.Stdout(), "pid")), "left behind")
		}
	}
}

// The first stage that helps is the last: KILL after the time for TERM, which a second signal
// ends.
func TestAScriptThatIgnoresTERMGetsKILL(t *testing.T) {
	m := newMachine(t, "")
	for _, term := range []string{"100ms", "1h"} {
		p := m.run("echo pid $$; trap 'echo I stay' TERM"+forever, "-term", term)
		p.WaitFor("ready")
		p.Signal(os.Interrupt)
		if term == "1h" {
			p.WaitFor("I stay")
			p.Signal(os.Interrupt)
		}
		assert.Equal(t, 130, p.Wait())
		assert.Equal(t, "sshrun: stopped by signal: interrupt; Process exited with status 137 from signal KILL\n", p.Stderr())
		assert.Empty(t, clitest.InGroup(t, clitest.Number(t, p.Stdout(), "pid")), "left behind")
	}
}

func TestTheLimitOfTheScriptStopsIt(t *testing.T) {
	p := newMachine(t, "").run("sleep 600", "-timeout", "100ms")
	assert.Equal(t, 124, p.Wait())
	assert.Regexp(t, "^sshrun: async: script: context deadline exceeded .limit 100ms.*; Process exited with status 143 from signal TERM\n$", p.Stderr())
}

// When a server does not do what it is asked for, the program comes back after its stages, and
// says so. A process that it has started has ended then.
func TestAServerThatDoesNotHelpIsAbandoned(t *testing.T) {
	for _, flaw := range []flaw{ignoreSignals, deaf, noEnd} {
		p := newMachine(t, flaw).run("true"+forever, "-term", "100ms", "-kill", "100ms")
		p.WaitFor("ready")
		p.Signal(os.Interrupt)
		assert.Equal(t, 255, p.Wait(), flaw)
		assert.Contains(t, p.Stderr(), "stopped by signal: interrupt; the connection has ended before the script has", flaw)
		assert.Contains(t, p.Stderr(), "the script may still run there\n", flaw)
	}
}

// Nobody cancels here: a server that does not read any more is found out by its silence.
func TestAServerThatFallsSilentIsFoundOut(t *testing.T) {
	p := newMachine(t, stalled).run("sleep 600", "-keepalive", "100ms", "-term", "100ms", "-kill", "100ms")
	assert.Equal(t, 255, p.Wait())
	assert.Contains(t, p.Stderr(), "no sign of life from the server for 300ms; the connection has ended before the script has")
}

func TestAServerThatNeverAnswersIsGivenUp(t *testing.T) {
	for flaw, during := range map[flaw]string{
		silent: "in the handshake", noSession: "opening a session", noShell: "starting bash",
	} {
		t.Run(string(flaw), func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, flaw)
			for limit := time.Second; ; limit *= 2 { // what does answer has to do so in this time
				p := m.run("true", "-connect-timeout", limit.String())
				assert.Equal(t, 255, p.Wait())
				if limit < time.Minute && !strings.HasPrefix(p.Stderr(), "sshrun: "+during+": ") {
					continue // it was slower
				}
				assert.Equal(t, fmt.Sprintf("sshrun: %s: no answer from %s within %v; nothing was run\n", during, m.address, limit), p.Stderr())
				break
			}
		})
	}
}

func TestAnEndThatIsNotToldIsNoSuccess(t *testing.T) {
	p := newMachine(t, hangUp).run("exit 0")
	assert.Equal(t, 255, p.Wait())
	assert.Contains(t, p.Stderr(), "the script may still run there")
}

func TestHalfAScriptIsNeverRun(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "marker")
	script := "touch " + marker + "\n" + strings.Repeat("# a long script\n", 64<<10)
	assert.Equal(t, 255, newMachine(t, cut).run(script).Wait())
	assert.NoFileExists(t, marker)
	assert.Equal(t, 0, newMachine(t, "").run(script).Wait())
	assert.FileExists(t, marker)
}

// A closed pipe must not end the program before the script has been told.
func TestAReaderThatGoesAwayStopsTheScript(t *testing.T) {
	m := newMachine(t, "")
	r, w, err := os.Pipe()
	require.NoError(t, err)
	script := m.file("script", "trap 'exit 7' TERM; echo ready; while echo y; do :; done")
	cmd := exec.Command("sshrun", "-identity", m.identity, "-known-hosts", m.known, "ci@"+m.address, script)
	var stderr strings.Builder
	cmd.Stdout, cmd.Stderr = w, &stderr
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	_, err = io.ReadFull(r, make([]byte, len("ready\n")))
	require.NoError(t, err)
	require.NoError(t, r.Close())
	_ = cmd.Wait()
	assert.Equal(t, 141, cmd.ProcessState.ExitCode())
	assert.Contains(t, stderr.String(), "broken pipe; Process exited with status 7")
}

// Whichever key is known: the server would show one of them by itself.
func TestAHostKeyIsChecked(t *testing.T) {
	m := newMachine(t, "")
	for _, key := range m.hostKeys {
		m.known = m.file("known_hosts", knownhosts.Line([]string{m.address}, key.PublicKey())+"\n")
		p := m.run("exit 3")
		assert.Equal(t, 3, p.Wait(), p.Stderr())
	}
	other := newMachine(t, "").hostKeys[0].PublicKey()
	for text, want := range map[string]string{
		"": "knownhosts: key is unknown: the key is SHA256:",
		knownhosts.Line([]string{m.address}, other) + "\n": "knownhosts: key mismatch: the key is SHA256:",
	} {
		m.known = m.file("known_hosts", text)
		p := m.run("exit 3")
		assert.Equal(t, 255, p.Wait())
		assert.Contains(t, p.Stderr(), want)
	}
}

func TestWhatIsWrongIsTold(t *testing.T) {
	m := newMachine(t, "")
	script := m.file("script", "true")
	for _, test := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"-h"}, 0, "authenticate with the private key"},
		{[]string{"-nope"}, 2, "not defined: -nope"},
		{[]string{"host"}, 2, "name a host and a script"},
		{[]string{"host", script}, 255, "-identity: open"},
		{[]string{"-identity", script, "host", "nowhere.sh"}, 255, "the script: open nowhere.sh"},
		{[]string{"-identity", script, "host", script}, 255, "ssh: no key found"},
		{[]string{"-identity", m.identity, "-known-hosts", "nowhere", "host", script}, 255, "-known-hosts: open nowhere"},
		{[]string{"-identity", m.file("another", string(pem.EncodeToMemory(&pem.Block{Type: "x"}))), "-known-hosts", m.known, "ci@" + m.address, script}, 255, "unsupported key type"},
	} {
		p := clitest.Start(t, nil, "sshrun", test.args...)
		assert.Equal(t, test.status, p.Wait(), test.args)
		assert.Contains(t, p.Stderr(), test.want)
	}
}
