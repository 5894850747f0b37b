//go:build unix

package workdir

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/async"
)

// TokenVariable is in the environment of every process of a run. Its value is a list of
// tokens with colons between them: that of the job that the process belongs to, after
// those of the jobs that the runner itself runs in. A token is the path of the work
// directory of a job. It proves whose a process is, whatever group or session it has made
// of itself, and whatever the number of its group was used for since.
const TokenVariable = "CIRUNNER_JOB"

// Tokens returns the value of TokenVariable for the processes of a job.
func (r *Run) Tokens(job string) string {
	token := jobToken(r.Dir, job) + ":"
	if outer := os.Getenv(TokenVariable); outer != "" {
		return outer + token
	}
	return ":" + token
}

// jobToken is the token of a job; without a name it is what all tokens of a run begin
// with.
func jobToken(dir, job string) string { return filepath.Join(dir, "jobs") + "/" + job }

// carries reports whether an environment has a token, or one that begins so if it ends in
// a slash.
func carries(environ []byte, token string) bool {
	if !strings.HasSuffix(token, "/") {
		token += ":"
	}
	for e := range bytes.SplitSeq(environ, []byte{0}) {
		value, ours := bytes.CutPrefix(e, []byte(TokenVariable+"="))
		if ours && bytes.Contains(value, []byte(":"+token)) {
			return true
		}
	}
	return false
}

// carriers returns the processes that have a token. A zombie has no environment, and
// needs nothing of us.
func carriers(token string) (pids []int) {
	procs, _ := os.ReadDir("/proc")
	for _, p := range procs {
		pid, err := strconv.Atoi(p.Name())
		if err == nil && pid != os.Getpid() && hasToken(pid, token) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// hasToken reports whether a process has a token, or has thrown it away and is known all the same.
func hasToken(pid int, token string) bool {
	environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return carries(environ, token) || worksForJob(pid, token)
}

// signalCarriers sends a signal to the processes that have a token, and returns those. The number of a process that
// has ended may be that of another before the signal is sent: where the system has handles of processes the handle
// is taken first.
func signalCarriers(token string, sig syscall.Signal) (sent []int) {
	for _, pid := range carriers(token) {
		p, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		if hasToken(pid, token) && p.Signal(sig) == nil {
			sent = append(sent, pid)
		}
		_ = p.Release()
	}
	return sent
}

// ending is how long processes are waited for that were killed. The system may be busy with others.
const ending = 10 * time.Second

// pause is how long it is until another look is taken at them.
const pause = 5 * time.Millisecond

// killCarriers kills the processes that have a token, and returns how many those were. It
// looks until there is none: one may have started another just before.
func killCarriers(token string) (killed int) {
	var sent []int
	for end := time.Now().Add(ending); time.Now().Before(end); time.Sleep(pause) {
		over := !slices.ContainsFunc(sent, lives) // before the look: then their children are ours
		found := signalCarriers(token, syscall.SIGKILL)
		if over && len(found) == 0 {
			break
		}
		killed = max(killed, len(found))
		sent = append(sent, found...)
	}
	return killed
}

// Bury waits for the dead that were adopted, every second until ctx ends: a job may leave more of them than there may be
// processes.
func (r *Run) Bury(ctx context.Context) error {
	_, err := async.Repeat(ctx, async.Every(time.Second), func(context.Context) error { r.bury(time.Now()); return nil }).Await(ctx, 0)
	return err
}

// Reap ends what is left of the processes of a job, in whatever group or session: with
// TERM and, after the grace or when ctx ends, with KILL. It returns how many there were
// at the beginning.
func (r *Run) Reap(ctx context.Context, job string, grace time.Duration) (left int) {
	token := jobToken(r.Dir, job)
	defer func() { r.bury(time.Now()) }()
	if ctx.Err() == nil && grace > 0 {
		sent := signalCarriers(token, syscall.SIGTERM)
		if left = len(sent); left == 0 {
			return 0
		}
		gone := func(context.Context) (struct{}, bool, error) {
			return struct{}{}, !slices.ContainsFunc(sent, lives) && len(carriers(token)) == 0, nil
		}
		_, _ = async.Poll(ctx, async.Backoff(2*time.Millisecond, 100*time.Millisecond), gone, async.Timeout(grace)).Wait(context.WithoutCancel(ctx))
	}
	return max(left, killCarriers(token))
}
