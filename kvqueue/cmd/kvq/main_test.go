package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The test program is kvq itself when it is told so.
func TestMain(m *testing.M) {
	if os.Getenv("KVQ_TEST") != "" {
		main()
	}
	// The race detector would have each of many processes wait for a second at its end.
	if err := os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// A session is a store on which programs are run.
type session struct {
	t     *testing.T
	store string
}

func newSession(t *testing.T) *session {
	return &session{t, "sqlite:" + filepath.Join(t.TempDir(), "q.db")}
}

// command makes a command that is kvq with these arguments.
func (s *session) command(args ...string) *exec.Cmd {
	self, err := os.Executable()
	require.NoError(s.t, err)
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), "KVQ_TEST=1", "KVQ_STORE="+s.store)
	s.t.Cleanup(func() {
		if cmd.Process != nil && cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return cmd
}

// kvq runs the program and returns its exit status and what it wrote.
func (s *session) kvq(stdin string, args ...string) (status int, stdout, stderr string) {
	s.t.Helper()
	cmd := s.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	if cmd.ProcessState == nil {
		require.NoError(s.t, err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// ok runs the program, which must end well.
func (s *session) ok(stdin string, args ...string) string {
	s.t.Helper()
	status, out, errs := s.kvq(stdin, args...)
	require.Zero(s.t, status, "%v: %s%s", args, out, errs)
	return out
}

func TestItemsFromTheCommandLineToTheirEnd(t *testing.T) {
	s := newSession(t)
	assert.Contains(t, s.ok("", "put", "one", "two words", `"quoted"`), "added 3, from ")
	s.ok("a line\nbytes \xff\x00\n", "put", "-quiet")
	s.ok("all of\nit", "put", "-whole")
	assert.Equal(t, "6\n", s.ok("", "len"))
	peek := s.ok("", "peek")
	for _, want := range []string{`"one"`, `"two words"`, `"\"quoted\""`, `"a line"`, `"bytes \xff\x00"`, `"all of\nit"`} {
		assert.Contains(t, peek, want+"\n")
	}
	assert.Equal(t, "one\n", s.ok("", "peek", "-n", "1", "-raw"))
	assert.Contains(t, s.ok("", "peek", "-json"), `"base64":"Ynl0ZXMg/wA="`)
	assert.Regexp(t, `ready +6 `, s.ok("", "stats"), "how wide a column is depends on the age")
	assert.Contains(t, s.ok("", "stats", "-json"), `"ready":6`)
	assert.Equal(t, "one two words a line", strings.Join([]string{
		s.ok("", "take", "-once", "--", "sh", "-c", `printf %s "$KVQ_ITEM"`),
		strings.TrimSpace(s.ok("", "take", "-once")),
		strings.TrimPrefix(s.ok("", "take", "-once", "--", "cat")+s.ok("", "take", "-once", "--", "cat"), `"quoted"`),
	}, " "))
	assert.Equal(t, "bytes \xff\x00\nall of\nit\n", s.ok("", "take", "-until-empty"))
	assert.Equal(t, "0\n", s.ok("", "len"))
}

func TestTheStatusOfACommandDecides(t *testing.T) {
	s := newSession(t)
	s.ok("", "put", "a")
	status, _, errs := s.kvq("", "take", "-once", "-delay", "0", "-attempts", "3", "--", "sh", "-c", "exit 7")
	assert.Equal(t, 7, status, "that of the command")
	assert.Contains(t, errs, "has failed")
	assert.Contains(t, s.ok("", "peek"), `"a" (1 tries)`)
	status, _, _ = s.kvq("", "take", "-once", "--", "sh", "-c", "exit 75")
	assert.Equal(t, 75, status)
	assert.Contains(t, s.ok("", "peek"), `(1 tries)`, "75 spends none")
	out := s.ok("", "take", "-until-empty", "--", "sh", "-c", `echo "$KVQ_QUEUE $KVQ_ATTEMPT $KVQ_FENCE $KVQ_KEY" >&2; exit 1`)
	assert.Empty(t, out)
	dead := s.ok("", "dead")
	assert.Contains(t, dead, `"a" failures=3 crashes=0 why="sh: exit status 1"`)
	key := strings.Fields(dead)[0]
	status, _, errs = s.kvq("", "doctor")
	assert.Equal(t, 1, status)
	assert.Contains(t, errs, "1 findings are bad")
	assert.Contains(t, s.ok("", "requeue", key), "1 items are ready")
	status, _, errs = s.kvq("", "requeue", key)
	assert.Equal(t, 3, status, errs)
	assert.Contains(t, s.ok("", "requeue", "-all"), "0 items")
	assert.Contains(t, s.ok("", "doctor"), "0 faults")
	_, _, errs = s.kvq("", "take", "-attempts", "2", "-once", "--", "sh", "-c", "exit 75")
	assert.Contains(t, errs, "kvq configure changes that", "the queue has 3")
	assert.Contains(t, s.ok("", "configure"), "3 failures or no crashes")
	assert.Contains(t, s.ok("", "configure", "-attempts", "1", "-crashes", "4", "-retention", "36h"), "1 failures or 4 crashes")
	assert.Contains(t, s.ok("", "stats"), "an id stands for 36h0m0s at least")
	assert.Contains(t, s.ok("", "configure", "-json"), `{"maxAttempts":1,"maxCrashes":4,"retryDelay":0,"maxRetryDelay":0,"retention":129600000000000,"timeLimit":0}`)
	assert.Contains(t, s.ok("", "configure", "-limit", "5m"), "a run is stopped after 5m0s")
	status, _, errs = s.kvq("", "take", "-until-empty", "--", "no-such-program-here")
	assert.Zero(t, status)
	assert.Contains(t, errs, "no-such-program-here")
	assert.Contains(t, s.ok("", "dead", "-json"), `"failures":1`)
}

func TestAnItemWithAnIDIsPutOnce(t *testing.T) {
	s := newSession(t)
	first := s.ok("", "put", "-id", "order/17", "one")
	assert.Contains(t, first, "added 1, from ")
	key := strings.Trim(strings.Fields(first)[3], ",")
	assert.Equal(t, "added none: the id is that of "+key+"\n", s.ok("", "put", "-id", "order/17", "one"))
	assert.Contains(t, s.ok("one", "put", "-id", "order/17", "-whole", "-json"), `{"first":"`+key+`","items":0,`)
	assert.Empty(t, s.ok("", "put", "-quiet", "-id", "order/17", "one"))
	assert.Equal(t, "1\n", s.ok("", "len"))
	assert.Contains(t, s.ok("", "doctor"), "0 faults")
	for _, args := range [][]string{{"a", "b"}, {}} {
		status, _, errs := s.kvq("a\nb\n", append([]string{"put", "-id", "x"}, args...)...)
		assert.NotZero(t, status)
		assert.Contains(t, errs, "-id is of one item")
	}
}

func TestTheNameOfAQueueIsAnyBytes(t *testing.T) {
	s := newSession(t)
	names := []string{"a/b", "a", "\xff \n", "%2F", "-"}
	for _, name := range names {
		s.ok("", "put", "-queue", name, "in "+name)
	}
	for _, name := range names {
		assert.Equal(t, "1\n", s.ok("", "len", "-queue", name))
		assert.Equal(t, "in "+name+"\n", s.ok("", "take", "-once", "-queue="+name))
	}
	assert.Contains(t, s.ok("", "stats", "-queue", "\x1b[2J"), `queue "\x1b[2J" in`)
	s.ok("", "put", "-prefix", "other", "x")
	assert.Equal(t, "0\n", s.ok("", "len"))
}

func TestExitStatus(t *testing.T) {
	s := newSession(t)
	status, _, errs := s.kvq("", "len")
	assert.Equal(t, 1, status)
	assert.Contains(t, errs, "there is no file")
	s.ok("", "put", "x")
	for _, c := range []struct {
		status int
		args   string
		says   string
	}{
		{0, "-h", ""},
		{0, "put -h", ""},
		{2, "", "a command is missing"},
		{2, "fly", "no command"},
		{2, "put -fly", "not defined"},
		{2, "put -whole x", "leave the arguments out"},
		{2, "len extra", "-queue"},
		{2, "take -workers 0", "1 or more"},
		{2, "take -attempts -1", "less than 1"},
		{2, "take -ttl 1ms", "not from 500ms"},
		{2, "peek -n 0", "less than 1"},
		{2, "requeue", "-all"},
		{2, "requeue x", "40 hexadecimal digits"},
		{2, "dead -from x", "40 hexadecimal digits"},
		{2, "stats -store nowhere", "sqlite:kvq.db"},
		{2, "stats -store sqlite:", "sqlite:kvq.db"},
		{2, "stats -store bolt:x.db", "kvq import"},
		{2, "import", "name the file"},
		{2, "stats -store etcd:", "etcd:127.0.0.1:2379"},
		{2, "stats -queue=", "from 1 to 1024"},
		{1, "put -store sqlite:/nowhere/at/all x", "make the folder"},
	} {
		status, out, errs := s.kvq("", strings.Fields(c.args)...)
		assert.Equal(t, c.status, status, "%s: %s", c.args, errs)
		assert.Contains(t, errs, c.says, c.args)
		if strings.HasSuffix(c.args, "-h") {
			assert.Contains(t, out, "Usage: kvq")
		}
	}
	for name := range commands {
		assert.Contains(t, s.ok("", name, "-h"), "Usage: kvq "+name)
	}
	assert.Equal(t, "0\n", s.ok("", "len", "-store", "mem:"))
}

func TestProcessesShareTheFile(t *testing.T) {
	s := newSession(t)
	s.ok("", "put", "-quiet", "first")
	take := s.command("take", "--", "sh", "-c", "echo started; exec cat")
	out, err := take.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, take.Start())
	for _, item := range []string{"first", "hello"} {
		said := make([]byte, len("started\n"+item))
		_, err = io.ReadFull(out, said)
		require.NoError(t, err)
		assert.Equal(t, "started\n"+item, string(said))
		if item == "first" {
			s.ok("", "put", "hello")
		}
	}
	assert.Contains(t, s.ok("", "doctor"), "the file has")
}
