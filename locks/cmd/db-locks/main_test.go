package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files anew")

// asProgram has the test binary be the program.
const asProgram = "AMBIT_DB_LOCKS"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	_ = flag.Set("test.parallel", "8") // those that run beside each other wait most of their time
	os.Exit(m.Run())
}

// A session is a sequence of command lines on one store.
type session struct {
	t   *testing.T
	env map[string]string
	// known are versions that were seen, for later lines.
	known []string
}

func newSession(t *testing.T) *session {
	return &session{t: t, env: map[string]string{"DATABASE_URL": "sqlite:" + filepath.Join(t.TempDir(), "l.db")}}
}

// run carries out a command line, and returns what it has written and its exit status.
// $1 is the first version that was seen, and so on.
func (s *session) run(line string) (stdout string, status int, err error) {
	s.t.Helper()
	var args []string
	for _, a := range strings.Fields(line) {
		for i, v := range s.known {
			if before, is := strings.CutSuffix(a, fmt.Sprint("$", i+1)); is {
				a = before + v
			}
		}
		args = append(args, a)
	}
	var out bytes.Buffer
	err = run(context.Background(), &program{
		args: args, env: func(name string) string { return s.env[name] },
		stdin: strings.NewReader(""), stdout: &out, stderr: os.Stderr,
	})
	if err != nil {
		status = 1
		if e, ok := err.(interface{ ExitStatus() int }); ok {
			status = e.ExitStatus()
		}
	}
	for _, v := range versions.FindAllString(out.String(), -1) {
		if !contains(s.known, v) {
			s.known = append(s.known, v)
		}
	}
	return out.String(), status, err
}

func contains(all []string, s string) bool {
	for _, a := range all {
		if a == s {
			return true
		}
	}
	return false
}

var (
	versions = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	times    = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?`)
	tokens   = regexp.MustCompile(`(fencing_token"?[:=])\d+`)
	owners   = regexp.MustCompile(`"(created_by|updated_by)":"[^"]+"|by "[^"]*"|held by \S+/\d+`)
)

// plain replaces what is different each time.
func (s *session) plain(text string) string {
	for i, v := range s.known {
		text = strings.ReplaceAll(text, v, fmt.Sprintf("<version %d>", i+1))
	}
	text = times.ReplaceAllString(text, "<time>")
	text = tokens.ReplaceAllString(text, "$1<token>")
	return owners.ReplaceAllStringFunc(text, func(m string) string {
		name, _, found := strings.Cut(m, ":")
		if !found {
			return "by <owner>"
		}
		return name + `:"<owner>"`
	})
}

// Each script is a list of command lines; the golden file has them with what they write.
func TestTheCommandsOfTheOriginal(t *testing.T) {
	scripts, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, scripts)
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(script)
			require.NoError(t, err)
			got := newSession(t).script(string(text), func(line string) string { return line })
			if *update {
				require.NoError(t, os.WriteFile(script, []byte(got), 0o600))
			}
			require.Equal(t, string(text), got)
		})
	}
}

// script carries out the command lines of a script, each as it is to be written there, and returns
// them with what they write.
func (s *session) script(text string, as func(line string) string) string {
	var got strings.Builder
	for _, line := range strings.Split(text, "\n") {
		line, isCommand := strings.CutPrefix(line, "$ ")
		if !isCommand {
			continue
		}
		out, status, err := s.run(as(line))
		fmt.Fprintf(&got, "$ %s\n%s", line, s.plain(out))
		if err != nil {
			fmt.Fprintf(&got, "! %s\n", s.plain(err.Error()))
		}
		if status != 0 {
			fmt.Fprintf(&got, "= %d\n", status)
		}
	}
	return got.String()
}

// original are the fields that the original program prints, in its order.
var original = map[string][]string{
	"mutex": {"mutex_key", "tenant_id", "version", "lease_duration_ms", "semaphore_key", "data", "delete_on_release", "locked", "expires_at",
		"created_by", "created_at", "updated_by", "updated_at", "fencing_token"},
	"semaphore": {"semaphore_key", "tenant_id", "version", "max_size", "lease_duration_ms", "busy_count", "fair_semaphore", "created_by",
		"created_at", "updated_by", "updated_at"},
}

func TestJSONHasEveryFieldOfTheOriginalInItsOrder(t *testing.T) {
	s := newSession(t)
	for line, kind := range map[string]string{
		"-j true create-mutex -k free":               "mutex",
		"-j true acquire -k held":                    "mutex",
		"-j true acquire -k pool -s 2":               "mutex",
		"-j true create-semaphore -k other -m 3":     "semaphore",
		"-j true --tenant acme create-mutex -k mine": "mutex",
	} {
		out, status, err := s.run(line)
		require.NoError(t, err)
		require.Zero(t, status)
		d := json.NewDecoder(strings.NewReader(out))
		var names []string
		for depth := 0; ; {
			token, err := d.Token()
			if err != nil {
				break
			}
			switch v := token.(type) {
			case json.Delim:
				depth++
			case string:
				names = append(names, v)
				_, err := d.Token()
				require.NoError(t, err)
			}
		}
		require.Equal(t, original[kind], names, line)
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	s := newSession(t)
	bad := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(bad, []byte("tenant_id: a\nno_such_setting: 1\n"), 0o600))
	for line, want := range map[string]string{
		"":                                       "a command is missing",
		"acquire":                                "acquire needs --key",
		"release -k a":                           "release needs --version",
		"create-semaphore -k a -m 0":             "0 is not from 1 to 1000",
		"create-semaphore -k a -m 1000000":       "at most",
		"acquire -k a -s -5":                     "not from 1 to 1000",
		"acquire -k a -l -5":                     "number of seconds",
		"acquire -k a -l 1us":                    "Lease",
		"acquire -k a -l 100h":                   "Lease",
		"acquire -k a extra":                     "takes no argument",
		"-j perhaps list":                        "true or false",
		"redis list":                             "REDIS_URL",
		"etcd list":                              "ETCD_URL",
		"-c " + bad + " list":                    "no_such_setting",
		"-c /no/such/file list":                  "file of settings",
		"frobnicate":                             "no command",
		"help frobnicate":                        "no command",
		"--store nonsense list":                  "scheme",
		"exec -k a":                              "needs a command",
		"--store sqlite:/no/such/dir/l.db list":  "cannot be opened",
		"acquire -k " + strings.Repeat("k", 1e4): "bytes",
		"acquire --nope":                         "unknown flag",
		"mysql acquire --key x":                  `no command "mysql"`,
		"acquire -k a --wait -1":                 "number of seconds",
	} {
		out, status, err := s.run(line)
		require.Error(t, err, line)
		require.Equal(t, 1, status, "%s: %v", line, err)
		require.Empty(t, out, line)
		require.Contains(t, err.Error(), want, line)
	}
}

// TestAcquireDoesNotUndoAResize: the size is that of the record, which acquire makes and does
// not change.
func TestAcquireDoesNotUndoAResize(t *testing.T) {
	s := newSession(t)
	for _, line := range []string{"acquire -k pool -s 5", "create-semaphore -k pool -m 3", "acquire -k pool -s 5"} {
		_, _, err := s.run(line)
		require.NoError(t, err)
	}
	out, _, err := s.run("get-semaphore -k pool")
	require.NoError(t, err)
	require.Contains(t, out, "max_size=3 busy_count=2")
}

func TestAPasswordOfAStoreIsInNoError(t *testing.T) {
	s := newSession(t)
	for _, url := range []string{
		"redis://user:hunter2@127.0.0.1:1/0", "redis://user:hunter2@127.0.0.1:port/0", "nosuch://user:hunter2@h/", "sqlite:/no/such/hunter2dir\x00/l.db",
	} {
		s.env["REDIS_URL"] = url
		_, _, err := s.run("--store " + url + " list")
		require.Error(t, err)
		if !strings.HasPrefix(url, "sqlite:") {
			require.NotContains(t, err.Error(), "hunter2")
		}
		_, _, err = s.run("redis list")
		require.Error(t, err)
		if !strings.HasPrefix(url, "sqlite:") {
			require.NotContains(t, err.Error(), "hunter2")
		}
	}
}

func TestHelpKnowsEveryCommand(t *testing.T) {
	s := newSession(t)
	all, _, err := s.run("-h")
	require.NoError(t, err)
	for name := range commands {
		require.Contains(t, all, "  "+name+" ")
		if name == "help" {
			continue
		}
		for _, line := range []string{name + " -h", "help " + name} {
			one, _, err := s.run(line)
			require.NoError(t, err)
			require.Contains(t, one, "Usage: db-locks [OPTIONS] [rdb|ddb|redis|etcd] "+name)
		}
	}
	for _, line := range []string{"-V", "--version", "list --version", "release -V"} {
		version, _, err := s.run(line)
		require.NoError(t, err)
		require.Contains(t, version, "db-locks")
	}
	acquire, _, err := s.run("acquire -h")
	require.NoError(t, err)
	require.NotContains(t, acquire, "-1")
}

func TestTimesAreSecondsOrHaveAUnit(t *testing.T) {
	s := newSession(t)
	for _, line := range []string{"acquire -k a --wait 1 --lease 3000", "acquire -k b --wait 500ms --lease 1m", "acquire -k c --wait 0"} {
		_, _, err := s.run(line)
		require.NoError(t, err, line)
	}
	_, status, _ := s.run("acquire -k a --wait 0")
	require.Equal(t, 2, status)
}
