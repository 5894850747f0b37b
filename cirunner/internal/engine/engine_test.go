//go:build unix

package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A value is among the arguments only where the client itself would read the variable, and nobody can rename it.
func TestEnviron(t *testing.T) {
	t.Setenv("TAKEN", "here")
	flags, env := environ([]string{"A=1\n2", "PATH=/x", "DOCKER_HOST=y", "TAKEN=there", "http_proxy=z"}, visibly)
	assert.Equal(t, []string{"--env", "A", "--env", "PATH=/x", "--env", "DOCKER_HOST=y", "--env", "TAKEN=there", "--env", "http_proxy=z"}, flags)
	assert.Contains(t, env, "A=1\n2")
	assert.Contains(t, env, "TAKEN=here")
	assert.False(t, slices.Contains(env, "PATH=/x") || slices.Contains(env, "DOCKER_HOST=y"))

	var renamed renaming
	flags, env = environ([]string{"A=1", "DOCKER_AUTH=a=b", "TAKEN="}, renamed.add)
	assert.Equal(t, []string{"--env", "A", "--env", "CIRUNNER_VALUE_1", "--env", "CIRUNNER_VALUE_2"}, flags)
	assert.Equal(t, []string{"DOCKER_AUTH", "TAKEN"}, renamed.names)
	assert.Equal(t, []string{"A=1", "CIRUNNER_VALUE_1=a=b", "CIRUNNER_VALUE_2="}, env[len(env)-3:])
	assert.Contains(t, env, "TAKEN=here")

	flags, _ = environ([]string{"GO-VERSION=1", "GO;touch x=2"}, renamed.add)
	assert.Equal(t, []string{"--env", "GO-VERSION=1", "--env", "GO;touch x=2"}, flags, "a shell would end, or run it")
	assert.Len(t, renamed.names, 2)
}

func TestListens(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue
   0: 00000000:1F40 00000000:0000 0A 00000000:00000000
   1: 0100007F:1F41 00000000:0000 0A 00000000:00000000
   2: 0A58000A:1F42 0A58000B:D431 01 00000000:00000000
`
	assert.True(t, listens(table, 8000))
	assert.False(t, listens(table, 8001), "on the loopback alone")
	assert.False(t, listens(table, 8002), "a connection")
	const six = "   0: 00000000000000000000000001000000:1F40 00000000000000000000000000000000:0000 0A 00000000:00000000\n" +
		"   1: 0000000000000000FFFF00000100007F:1F41 00000000000000000000000000000000:0000 0A 00000000:00000000\n" +
		"   2: 00000000000000000000000000000000:1F42 00000000000000000000000000000000:0000 0A 00000000:00000000\n"
	assert.False(t, listens(six, 8000), "on the loopback alone")
	assert.False(t, listens(six, 8001), "on the loopback alone")
	assert.True(t, listens(six, 8002))
}

// The first that answers is taken; each that does not is told.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":/bin:/usr/bin")
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o755))
	}
	write("docker", "echo no daemon >&2; exit 1\n")
	write("podman", "exit 0\n")
	e, err := Find(t.Context(), nil, []string{"--memory", "1g"})
	require.NoError(t, err)
	assert.Equal(t, &Engine{Client: []string{"podman"}, Run: []string{"--memory", "1g"}}, e)
	write("podman", "echo broken >&2; exit 125\n")
	_, err = Find(t.Context(), nil, nil)
	require.ErrorIs(t, err, ErrNone)
	assert.Equal(t, "no container engine answers; docker ps: exit status 1: no daemon; podman ps: exit status 125: broken", err.Error())
	_, err = Find(t.Context(), []string{"docker", "-H", "x"}, nil)
	assert.Equal(t, "no container engine answers; docker ps: exit status 1: no daemon", err.Error())
}

// A run that is stopped while an engine is looked for is told why, and not that there is none.
func TestFindIsStopped(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	why := errors.New("a person")
	dir := t.TempDir()
	begun := filepath.Join(dir, "begun")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "slow"), []byte("#!/bin/sh\n: >"+begun+"\nsleep 60\n"), 0o755))
	go func() {
		for _, err := os.Stat(begun); err != nil; _, err = os.Stat(begun) {
			time.Sleep(time.Millisecond)
		}
		stop(why)
	}()
	_, err := Find(ctx, []string{filepath.Join(dir, "slow")}, nil)
	require.ErrorIs(t, err, why)
	require.NotErrorIs(t, err, ErrNone)
}

// A container that has ended has no address, and its end is told instead.
func TestAddress(t *testing.T) {
	address := func(networks, state string) (string, error) {
		client := filepath.Join(t.TempDir(), "client")
		text := "#!/bin/sh\ncase $3 in *Networks*) echo '" + networks + "' ;; *) echo '" + state + "' ;; esac\n"
		require.NoError(t, os.WriteFile(client, []byte(text), 0o755))
		return (&Container{Engine: &Engine{Client: []string{client}}, Name: "web"}).Address(t.Context())
	}
	got, err := address("10.1.2.3 10.2.2.3 ", "true 0")
	require.NoError(t, err)
	assert.Equal(t, "10.1.2.3", got)
	_, err = address(" ", "true 0")
	require.EqualError(t, err, "web has no address in its network")
	_, err = address(" ", "false 137")
	require.EqualError(t, err, "has ended: exit status 137")
}

// The end of ctx kills the container, and what that has said comes to its end, however slow the client is.
func TestNothingThatAContainerHasSaidIsLost(t *testing.T) {
	dir := t.TempDir()
	client := filepath.Join(dir, "client")
	text := "#!/bin/sh\ncase $1 in kill) echo \"$*\" >" + dir + "/killed ;; logs) until [ -e " + dir + "/killed ]; do sleep 0.01; done; echo said ;; esac\n"
	require.NoError(t, os.WriteFile(client, []byte(text), 0o755))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out strings.Builder
	require.NoError(t, (&Container{Engine: &Engine{Client: []string{client}}, Name: "db"}).Logs(ctx, &out))
	assert.Equal(t, "said\n", out.String())
	asked, err := os.ReadFile(filepath.Join(dir, "killed"))
	require.NoError(t, err)
	assert.Equal(t, "kill --signal KILL db\n", string(asked))
}

// A script that ends by itself as it is to be stopped has ended by itself.
func TestAStopThatComesWithTheEndChangesNothing(t *testing.T) {
	done, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		var s stopping // without a container: nothing is sent
		s.watch(done, t.Context(), done, func(error) { t.Error("the client is ended") })
		require.NoError(t, s.cause)
	}
}

// An engine that was written down is found by the address that it had then, also if that was none.
func TestRecorded(t *testing.T) {
	client := filepath.Join(t.TempDir(), "client")
	require.NoError(t, os.WriteFile(client, []byte("#!/bin/sh\necho \"host=${DOCKER_HOST-none}\"\n"), 0o755))
	for _, address := range []string{"none", "", "tcp://there"} {
		t.Setenv("DOCKER_HOST", address)
		if address == "none" {
			require.NoError(t, os.Unsetenv("DOCKER_HOST"))
		}
		lines := (&Engine{Client: []string{client, "--flag"}}).Record()
		t.Setenv("DOCKER_HOST", "tcp://elsewhere")
		e := Recorded(lines)
		assert.Equal(t, []string{client, "--flag"}, e.Client)
		said, err := e.ask(t.Context(), "ps")
		require.NoError(t, err)
		assert.Equal(t, "host="+address, said)
	}
	assert.Nil(t, Recorded(nil))
	assert.Equal(t, []string{client}, Recorded([]string{client}).Client)
}
