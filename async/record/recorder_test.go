package record

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/async/picture"
)

var errPlanted = errors.New("planted\nsecond line")

// end tells r of the end of a task.
func end(r *Recorder, n int64, name string, took time.Duration, err error) {
	id := picture.ID{Scope: 7, Ordinal: n}
	r.Observe(async.Event{Kind: async.EventEnd, Task: name, ID: id, Duration: took, Err: err, Ctx: context.Background()})
}

// A recorder keeps the last events, takes no more memory than it may, and counts what it has lost.
func TestARecorderIsBounded(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(event{}), uintptr(eventBytes))
	r := New(Bytes(64 << 10))
	const most = 64 << 10 / eventBytes
	for n := range int64(200_000) {
		end(r, n, fmt.Sprint("task ", n), 0, nil)
	}
	all := r.Recording(nil)
	require.LessOrEqual(t, len(all.Events), most)
	require.Greater(t, len(all.Events), most*9/10)
	require.EqualValues(t, 200_000, all.Lost+int64(len(all.Events)))
	others := 0
	for i := range r.shards {
		require.LessOrEqual(t, len(r.shards[i].called), mostNames+1)
		require.LessOrEqual(t, cap(r.shards[i].ring)*int(unsafe.Sizeof(event{})), 64<<10/shards)
	}
	for _, e := range all.Events {
		require.Greater(t, e.ID.Ordinal, int64(190_000), "the last ones")
		if e.Task == "other" {
			others++
		}
	}
	require.Equal(t, len(all.Events), others, "names that came too late are not told apart")
	require.Panics(t, func() { Bytes(1) })
	require.Panics(t, func() { New(nil) })
}

func TestFailuresOutliveSuccesses(t *testing.T) {
	r := New(Bytes(64 << 10))
	end(r, 1, "fails", time.Second, errPlanted)
	for n := range int64(100_000) {
		end(r, n, "ends well", 0, nil)
	}
	all := r.Recording(nil)
	require.Len(t, all.Failures, 1)
	f := all.Failures[0]
	require.Equal(t, Failure{ID: picture.ID{Scope: 7, Ordinal: 1}, Task: "fails", At: f.At, Outcome: "error", Type: "*errors.errorString", Text: "planted"}, f)
	for n := range int64(1000) {
		end(r, n, "fails", 0, fmt.Errorf("failure %d", n))
	}
	all = r.Recording(nil)
	require.Len(t, all.Failures, mostFailures)
	require.Equal(t, "failure 999", all.Failures[mostFailures-1].Text)
}

type panics struct{}

func (panics) Error() string { panic("no text") }

func TestTextsAreGuarded(t *testing.T) {
	r := New()
	end(r, 1, strings.Repeat("n", 1<<20), 0, panics{})
	end(r, 2, "\xff", 0, errors.New(strings.Repeat("é", 1<<20)))
	for _, f := range r.Recording(nil).Failures {
		require.Less(t, len(f.Text)+len(f.Task), 2*mostText+10)
	}
	var b bytes.Buffer
	require.NoError(t, r.Save(&b))
	_, err := Open(&b)
	require.NoError(t, err)
}

// Every way to end has its word, and the times are those of the tasks.
func TestWhatIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		r := New()
		began := time.Now()
		func() {
			defer func() { _ = recover() }()
			_ = async.Scope(ctx, func(ctx context.Context) error {
				run := func(name string, f func(ctx context.Context) error, opts ...async.TaskOption) *async.Future[struct{}] {
					return async.Start(ctx, f, append(opts, async.Name(name))...)
				}
				waits := func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
				fs := []*async.Future[struct{}]{
					run("ok", func(ctx context.Context) error { return async.Sleep(ctx, 3*time.Second) }),
					run("error", func(context.Context) error { return errPlanted }),
					run("timeout", waits, async.Timeout(2*time.Second)),
					run("goexit", func(context.Context) error { runtime.Goexit(); return nil }),
					run("cancelled", waits),
					run("panic", func(context.Context) error { panic(errPlanted) }),
					run("error", func(ctx context.Context) error { _ = async.Sleep(ctx, 0); return errPlanted }), // it has a scope of its own
				}
				time.Sleep(time.Second)
				fs[4].Cancel(errPlanted)
				for _, f := range fs {
					_, _ = f.Wait(ctx)
				}
				return nil
			}, async.Observe(r), async.Name("scope"))
		}()
		took := map[string]time.Duration{"ok": 3 * time.Second, "timeout": 2 * time.Second, "cancelled": time.Second, "error": 0, "goexit": 0, "panic": 0}
		all, seen := r.Recording(nil), make(map[string]bool)
		for _, e := range all.Events {
			if e.Task == "scope" {
				continue
			}
			require.Equal(t, e.Task, e.Outcome)
			require.Equal(t, took[e.Task], e.Took, e.Task)
			require.Equal(t, took[e.Task], e.Ended.Sub(began), e.Task)
			require.NotZero(t, e.ID)
			require.NotZero(t, e.Owner)
			seen[e.Task] = true
		}
		require.Len(t, seen, len(took))
		require.Len(t, all.Failures, 5)
	})
}

func TestARecordingIsReadAsItWasWritten(t *testing.T) {
	r := New(Bytes(64 << 10))
	for n := range int64(2000) {
		end(r, n, fmt.Sprint("task ", n%30), time.Duration(n), map[bool]error{true: errPlanted}[n%100 == 0])
	}
	var one, two bytes.Buffer
	require.NoError(t, r.Save(&one))
	file := one.Bytes()
	read, err := Open(bytes.NewReader(file))
	require.NoError(t, err)
	require.NotEmpty(t, read.Events)
	require.NotEmpty(t, read.Failures)
	require.Positive(t, read.Lost)
	require.NoError(t, read.Save(&two))
	again, err := Open(&two)
	require.NoError(t, err)
	require.Equal(t, read, again)
	for n := range len(file) - 1 {
		if n%499 == 0 || n > len(file)-20 {
			_, err := Open(bytes.NewReader(file[:n]))
			require.Error(t, err, "cut off at %d of %d", n, len(file))
		}
	}
	require.ErrorIs(t, r.Save(broken{}), errPlanted)
	require.ErrorIs(t, r.WriteTrace(broken{}), errPlanted)
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errPlanted }

// Whatever Open is given, it returns a recording or an error.
func FuzzOpen(f *testing.F) {
	zipped := func(text string) []byte {
		var b bytes.Buffer
		zip := gzip.NewWriter(&b)
		_, _ = zip.Write([]byte(text))
		_ = zip.Close()
		return b.Bytes()
	}
	for _, text := range []string{
		"", "{}", `{"schema":"ambit-recording/2"}`, `{"schema":"ambit-recording/1"}`,
		`{"schema":"ambit-recording/1"}{"event":{"id":"1.2"}}`, `{"schema":"ambit-recording/1"}{"event":{"id":"-"}}`, `{"schema":"ambit-recording/1"}[]`,
	} {
		f.Add(zipped(text))
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := Open(bytes.NewReader(file))
		require.Equal(t, err == nil, r != nil)
	})
}

// Bars of one lane nest or follow each other, whatever was recorded, and a task stands in the lane of its owner if that can be.
func TestBarsNest(t *testing.T) {
	for seed := range uint64(10) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		r := &Recording{}
		begin := time.Unix(1000, 0)
		var grow func(owner picture.ID, from, to int, depth int)
		ordinal := int64(0)
		grow = func(owner picture.ID, from, to, depth int) {
			for range rnd.IntN(6) {
				ordinal++
				a := from + rnd.IntN(to-from+1)
				b := a + rnd.IntN(to-a+1)
				id := picture.ID{Scope: 2, Ordinal: ordinal}
				if depth < 4 {
					grow(id, a, b, depth+1)
				}
				r.Events = append(r.Events, Event{ID: id, Owner: owner, Task: "t", Outcome: "ok",
					Ended: begin.Add(time.Duration(b) * time.Millisecond), Took: time.Duration(b-a) * time.Millisecond})
			}
		}
		grow(picture.ID{}, 0, 1000, 0)
		var b bytes.Buffer
		require.NoError(t, r.WriteTrace(&b))
		var trace struct{ TraceEvents []bar }
		require.NoError(t, json.Unmarshal(b.Bytes(), &trace), b.String())
		require.Len(t, trace.TraceEvents, len(r.Events))
		for i, x := range trace.TraceEvents {
			for _, y := range trace.TraceEvents[:i] {
				apart := x.At+x.Took <= y.At || y.At+y.Took <= x.At
				within := x.At >= y.At && x.At+x.Took <= y.At+y.Took || y.At >= x.At && y.At+y.Took <= x.At+x.Took
				if x.Lane == y.Lane && !apart && !within {
					t.Fatalf("%+v %+v", x, y)
				}
			}
		}
	}
	one := &Recording{Events: []Event{
		{ID: picture.ID{Scope: 2, Ordinal: 1}, Owner: picture.ID{Scope: 1, Ordinal: 1}, Ended: time.Unix(9, 0), Took: 5 * time.Second},
		{ID: picture.ID{Scope: 1, Ordinal: 1}, Ended: time.Unix(10, 0), Took: 10 * time.Second},
	}}
	one.Events = append(one.Events, // two that take as long as what is in them; what is in them is recorded first
		Event{ID: picture.ID{Scope: 3, Ordinal: 1}, Owner: picture.ID{Scope: 1, Ordinal: 2}, Ended: time.Unix(20, 0), Took: time.Second},
		Event{ID: picture.ID{Scope: 1, Ordinal: 2}, Ended: time.Unix(20, 0), Took: time.Second})
	var b bytes.Buffer
	require.NoError(t, one.WriteTrace(&b))
	require.Equal(t, 4, strings.Count(b.String(), `"tid":0`), "a task is inside its owner")
}

// Tasks that end at once on many goroutines are recorded each, and read meanwhile.
func TestManyAreRecordedAtOnce(t *testing.T) {
	r := New()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for n := range int64(1000) {
				end(r, int64(g)*1000+n, fmt.Sprint("task ", g), 0, map[bool]error{true: errPlanted}[n%10 == 0])
				if n%500 == 0 {
					_ = r.Recording(nil)
				}
			}
		})
	}
	wg.Wait()
	all := r.Recording(nil)
	require.Len(t, all.Events, 8000)
	require.Zero(t, all.Lost)
	require.Len(t, all.Failures, mostFailures)
}

// The data of an ended task are collected, although the task is recorded.
func TestNothingOfATaskIsKept(t *testing.T) {
	ctx := asynctest.Context(t)
	r := New()
	var held weak.Pointer[[1 << 16]byte]
	require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
		data := new([1 << 16]byte)
		held = weak.Make(data)
		f := async.Start(ctx, func(context.Context) error { data[0] = 1; return fmt.Errorf("%w: %d", errPlanted, data[0]) }, async.Name("has data"))
		_, _ = f.Wait(ctx)
		return nil
	}, async.Observe(r)))
	for end := time.Now().Add(time.Minute); held.Value() != nil && time.Now().Before(end); time.Sleep(time.Millisecond) {
		runtime.GC() // the goroutine of the task is perhaps about to end, and has them until then
	}
	require.Nil(t, held.Value())
	require.Equal(t, "planted", r.Recording(nil).Failures[0].Text)
}

// Names are kept as they are told, cut: one that is long, or no text, is not kept whole beside that.
func TestNoNameIsKeptWhole(t *testing.T) {
	r := New(Bytes(64 << 10))
	for _, name := range []string{strings.Repeat("long", 10_000), "no text: \xff"} {
		for range 2 {
			end(r, 1, name, 0, nil)
		}
	}
	for i := range r.shards {
		s := &r.shards[i]
		require.LessOrEqual(t, len(s.called), 3, "each name once")
		for name := range s.names {
			require.LessOrEqual(t, len(name), mostText+len("…"))
			require.Equal(t, name, s.called[s.names[name]])
		}
	}
}

// Tasks that nobody in the recording owns take as many lanes as there are at the most at a time.
func TestNoMoreLanesThanTasksAtATime(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var r Recording
	most, change := 0, map[int]int{}
	for n := range 20_000 {
		began, took := rnd.IntN(100_000), 1+rnd.IntN(1_000)
		change[began]++
		change[began+took]--
		r.Events = append(r.Events, Event{ID: picture.ID{Scope: 1, Ordinal: int64(n)}, Ended: time.Unix(0, int64(began+took)), Took: time.Duration(took)})
	}
	for at, n := 0, 0; at <= 101_000; at++ {
		n += change[at]
		most = max(most, n)
	}
	slices.SortFunc(r.Events, func(a, b Event) int { return a.Ended.Compare(b.Ended) })
	var l lanes
	for _, e := range r.byStart() {
		l.of(e)
	}
	require.Len(t, l.open, most)
}
