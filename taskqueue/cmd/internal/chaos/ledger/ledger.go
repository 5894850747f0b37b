// Package ledger is what the processes of a run of chaos write down, each in a journal
// of its own: what was acknowledged, what was claimed, run and settled. The auditor
// compares it with what is in the store.
package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// A Kind says what an entry is about.
type Kind string

const (
	// Trying is written before a task is enqueued: if no Added follows, whether it was
	// is not known. Task is set.
	Trying Kind = "trying"
	// Added is written when the store has answered an Enqueue. Verdict and Holder are set.
	Added Kind = "added"
	// Refused is written for a task that the store refuses, because it does not know one that it waits for.
	Refused Kind = "refused"
	// Cancelling is written before a Cancel.
	Cancelling Kind = "cancelling"
	// Cancelled is written when the store has said true to a Cancel.
	Cancelled Kind = "cancelled"
	// Claimed is written for each task that a claim has got. Began, Now, Due and
	// Enqueued are set.
	Claimed Kind = "claimed"
	// Started is written by a handler before it does anything.
	Started Kind = "started"
	// Believes is written by a handler that was told by its context that it may go on.
	// At is the time before it asked.
	Believes Kind = "believes"
	// Ended is written by a handler as its last act. Text is its error. Lost: its lease
	// was lost.
	Ended Kind = "ended"
	// Settling is written before an outcome is told to the store, at each attempt.
	Settling Kind = "settling"
	// Settled is written when the store has answered that. Answer is set.
	Settled Kind = "settled"
	// Returned is written when Work has returned. Text is its error.
	Returned Kind = "returned"
	// Fault is written by a process that has seen something that cannot be right.
	Fault Kind = "fault"
)

// An Entry is one line of a journal. Times are nanoseconds since 1970, by the clock of
// the machine, which nobody puts forward or back; those of the store are microseconds
// by its own.
type Entry struct {
	Kind  Kind   `json:"kind"`
	At    int64  `json:"at"`
	Began int64  `json:"began,omitempty"` // before the call whose answer this is
	By    string `json:"-"`               // the journal

	ID    string          `json:"id,omitempty"`
	Token int64           `json:"token,omitempty"`
	Task  *taskqueue.Task `json:"task,omitempty"`

	Verdict  taskqueue.Verdict  `json:"verdict,omitempty"`
	Holder   string             `json:"holder,omitempty"`
	Now      int64              `json:"now,omitempty"`
	Due      int64              `json:"due,omitempty"`
	Enqueued int64              `json:"enqueued,omitempty"`
	First    bool               `json:"first,omitempty"` // nothing is known of a run before
	Outcome  store.OutcomeKind  `json:"outcome,omitempty"`
	Answer   store.SettleResult `json:"answer,omitempty"`
	Lost     bool               `json:"lost,omitempty"`
	Text     string             `json:"text,omitempty"`
}

// Now is the time for an entry.
func Now() int64 { return time.Now().UnixNano() }

// suffix is what names of journals end with.
const suffix = ".journal"

// A Journal is a file of entries. Its methods may be called by any number of
// goroutines.
type Journal struct {
	mu   sync.Mutex
	file *os.File
}

// Create makes the journal of a process in dir.
func Create(dir, name string) (*Journal, error) {
	f, err := os.OpenFile(filepath.Join(dir, name+suffix), os.O_CREATE|os.O_EXCL|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &Journal{file: f}, nil
}

// Write adds entries in one write, so that a process that is killed leaves whole
// lines. Those without a time get that of now.
func (j *Journal) Write(all ...Entry) error {
	var b bytes.Buffer
	for i := range all {
		if all[i].At == 0 {
			all[i].At = Now()
		}
		line, err := json.Marshal(&all[i])
		if err != nil {
			return err
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	_, err := j.file.Write(b.Bytes())
	return err
}

// WriteSynced is Write, and returns when the disk has the entries.
func (j *Journal) WriteSynced(all ...Entry) error {
	if err := j.Write(all...); err != nil {
		return err
	}
	return j.file.Sync()
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }

// Read returns the entries of all journals in dir.
func Read(dir string) ([]Entry, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		return nil, err
	}
	var all []Entry
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		by := strings.TrimSuffix(filepath.Base(name), suffix)
		for len(b) > 0 {
			line, rest, whole := bytes.Cut(b, []byte("\n"))
			if b = rest; !whole {
				break // its process was killed while it wrote
			}
			e := Entry{By: by}
			if err := json.Unmarshal(line, &e); err != nil {
				return nil, fmt.Errorf("journal %s: %w", by, err)
			}
			all = append(all, e)
		}
	}
	return all, nil
}
