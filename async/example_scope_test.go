package async_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func ExampleScope() {
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error {
			<-ctx.Done() // a sibling has failed
			fmt.Println("stopped because:", context.Cause(ctx))
			return ctx.Err()
		})
		async.Go(ctx, func(context.Context) error { return errors.New("disk full") })
		return nil
	})
	fmt.Println("scope:", err)
	// Output:
	// stopped because: disk full
	// scope: disk full
}

func ExampleGo() {
	site := map[string]string{"/": "welcome", "/about": "who we are", "/jobs": ""}
	pages := []string{"/", "/about", "/jobs"}
	words := make([]int, len(pages))
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		for i, page := range pages {
			async.Go(ctx, func(context.Context) error {
				text, ok := site[page]
				if !ok {
					return fmt.Errorf("%s: not found", page) // would cancel the others
				}
				words[i] = len(strings.Fields(text))
				return nil
			})
		}
		return nil
	})
	fmt.Println(words, err) // no lock: all of them have ended
	// Output: [1 3 0] <nil>
}

// A callback has nobody to return an error to.
func ExampleFail() {
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		onClose := func(err error) { async.Fail(ctx, err) }
		onClose(errors.New("connection reset"))
		<-ctx.Done() // the scope is cancelled with it
		return nil
	})
	fmt.Println(err)
	// Output: connection reset
}

func ExampleScopeError() {
	errQuota := errors.New("quota exceeded")
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		async.OnExit(ctx, func(context.Context, error) error {
			return fmt.Errorf("remove lock file: %w", fs.ErrPermission)
		})
		async.Go(ctx, func(context.Context) error { return errQuota })
		async.Go(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err() // only stopped, so it is not listed
		})
		return nil
	}, async.Name("import"))
	var all *async.ScopeError
	if errors.As(err, &all) {
		fmt.Printf("%s: %q\n", all.Scope, all.Errors) // the first one decided
	}
	fmt.Println(errors.Is(err, errQuota), errors.Is(err, fs.ErrPermission), errors.Is(err, context.Canceled))
	// Output:
	// import: ["quota exceeded" "remove lock file: permission denied"]
	// true true false
}

func ExampleDetach() {
	ctx, _ := asynctest.Root(context.Background()) // for this example only; a program uses the ctx it has
	paid := make(chan struct{})
	err := async.Scope(ctx, func(ctx context.Context) error {
		async.Detach(ctx, "audit log", func(ctx context.Context) error {
			<-paid
			fmt.Println("logged, cancelled:", ctx.Err() != nil)
			return nil
		})
		return errors.New("the customer hung up")
	})
	fmt.Println("scope:", err)
	fmt.Println("running:", asynctest.Live(ctx))
	close(paid)
	fmt.Println("shutdown:", async.Shutdown(ctx)) // waits for the log
	// Output:
	// scope: the customer hung up
	// running: [audit log]
	// logged, cancelled: false
	// shutdown: <nil>
}

func ExampleShutdown() {
	ctx, _ := asynctest.Root(context.Background()) // for this example only; a program uses the ctx it has
	async.Detach(ctx, "upload logs", func(context.Context) error { return errors.New("no space left") })
	fmt.Println("shutdown:", async.Shutdown(ctx)) // at the end of main
	// Output: shutdown: no space left
}

func ExampleShutdown_straggler() {
	ctx, _ := asynctest.Root(context.Background()) // for this example only; a program uses the ctx it has
	printed := make(chan struct{})
	async.Detach(ctx, "print labels", func(ctx context.Context) error {
		<-printed // the printer knows no context
		fmt.Println("printed, although", context.Cause(ctx))
		return nil
	})
	patient, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	var left *async.StragglerError
	if errors.As(async.Shutdown(patient), &left) {
		fmt.Println("left:", left.Left[0].Task)
	}
	close(printed)
	fmt.Println("shutdown:", async.Shutdown(ctx)) // with more patience
	// Output:
	// left: print labels
	// printed, although async: shutting down
	// shutdown: <nil>
}

var errServerStopped = errors.New("server stopped")

// A cacheServer is a type with a Start and a Stop.
type cacheServer struct{ group *async.Group }

func startServer(ctx context.Context) *cacheServer {
	s := &cacheServer{async.NewGroup(ctx, async.Name("cache"))}
	_ = s.group.Go(func(ctx context.Context) error { // runs until it is told to stop
		<-ctx.Done()
		fmt.Println("loop:", context.Cause(ctx))
		return nil
	})
	return s
}

func (s *cacheServer) stop(ctx context.Context) error {
	return s.group.Stop(ctx, errServerStopped)
}

// A Group is for what is started in one function and stopped in another.
func ExampleGroup() {
	ctx := context.Background()
	s := startServer(ctx)
	fmt.Println("stop:", s.stop(ctx))
	fmt.Println("again:", s.stop(ctx))
	fmt.Println("late:", errors.Is(s.group.Go(func(context.Context) error { return nil }), async.ErrScopeEnded))
	// Output:
	// loop: server stopped
	// stop: <nil>
	// again: <nil>
	// late: true
}

func ExampleNewGroup() {
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		uploads := async.NewGroup(ctx, async.Name("uploads"), async.Limit(2))
		for i := range 3 {
			_ = uploads.Go(func(context.Context) error {
				if i == 1 {
					return errors.New("disk full")
				}
				return nil
			})
		}
		return uploads.Wait(ctx)
	})
	fmt.Println(err)
	// Output: disk full
}

func ExampleGroup_Wait() {
	ctx := context.Background()
	g := async.NewGroup(ctx)
	for i := range 3 {
		_ = g.Go(func(ctx context.Context) error { return async.Sleep(ctx, time.Duration(i)*time.Millisecond) })
	}
	fmt.Println(g.Wait(ctx))
	// Output: <nil>
}

func ExampleGroup_Stop() {
	ctx := context.Background()
	g := async.NewGroup(ctx)
	hurt := make(chan struct{})
	_ = g.Go(func(context.Context) error { <-hurt; return nil }, async.Name("stubborn"))
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	var left *async.StragglerError
	if errors.As(g.Stop(short, errServerStopped), &left) {
		fmt.Println(left.Left[0].Task, "is left")
	}
	close(hurt)
	fmt.Println(g.Stop(ctx, nil))
	// Output:
	// stubborn is left
	// <nil>
}

func ExampleGroup_Cancel() {
	ctx := context.Background()
	g := async.NewGroup(ctx)
	_ = g.Go(func(context.Context) error {
		fmt.Println("first:", g.Cancel(errServerStopped)) // Stop would wait for this task
		fmt.Println("again:", g.Cancel(nil))
		return nil
	})
	fmt.Println(g.Wait(ctx))
	// Output:
	// first: true
	// again: false
	// <nil>
}

func ExampleOnAbort() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		killed := make(chan struct{}) // stands for a process that knows no context
		run := async.Start(ctx, func(context.Context) error {
			<-killed
			return errors.New("signal: killed")
		}, async.OnAbort(func(context.Context, error) error {
			close(killed)
			return nil
		}), async.Grace(time.Minute))
		_, err := run.Await(ctx, time.Millisecond)
		fmt.Println(errors.Is(err, context.DeadlineExceeded), err != nil)
		return nil
	})
	// Output: true true
}

func ExampleOnExit() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		async.OnExit(ctx, func(_ context.Context, outcome error) error {
			fmt.Println("closed after:", outcome)
			return nil
		})
		return errors.New("out of paper")
	})
	// Output: closed after: out of paper
}

func ExampleShield() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := async.Shield(ctx, time.Second, func(ctx context.Context) error {
		return ctx.Err() // nil: there is time to clean up
	})
	fmt.Println(err)
	// Output: <nil>
}

// A program of several parts that stops, all of it, when one of them has ended.
func ExampleLeader() {
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error { // serves until it is told to stop
			<-ctx.Done()
			fmt.Println("server stops:", context.Cause(ctx))
			return ctx.Err()
		})
		async.Go(ctx, func(ctx context.Context) error {
			_ = async.Sleep(ctx, time.Millisecond)
			fmt.Println("the job is done")
			return nil
		}, async.Leader())
		return nil
	})
	fmt.Println("error:", err)
	// Output:
	// the job is done
	// server stops: async: dismissed
	// error: <nil>
}

// A worker that fails now and then is called again. The others in the scope hear
// nothing of it.
func ExampleRestart() {
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		calls := 0
		async.Go(ctx, func(ctx context.Context) error {
			switch calls++; calls {
			case 1:
				return errors.New("connection lost")
			case 2:
				panic("a bug")
			}
			fmt.Println("call", calls, "ends well")
			return nil
		}, async.Restart(async.RestartPolicy{Interval: async.Backoff(time.Millisecond, time.Second)}))
		return nil
	})
	fmt.Println(err)
	// Output:
	// call 3 ends well
	// <nil>
}

// The third failure within ten seconds is the last.
func ExampleRestartPolicy() {
	f := async.Start(context.Background(), func(ctx context.Context) error {
		return errors.New("connection refused")
	}, async.Name("feed"), async.Restart(async.RestartPolicy{Interval: async.Every(time.Millisecond), Attempts: 3, Within: 10 * time.Second}))
	_, err := f.Await(context.Background(), time.Minute)
	fmt.Println(err)
	// Output: async: feed: given up after 3 failures within 10s; last failure: connection refused
}

// A run that has lasted long enough makes the failures before it forgotten.
func ExampleRestartPolicy_healthy() {
	calls := 0
	interval := func(failures int) time.Duration {
		fmt.Println("call", calls, "is failure", failures)
		return time.Millisecond
	}
	f := async.Start(context.Background(), func(ctx context.Context) error {
		switch calls++; calls {
		case 3:
			_ = async.Sleep(ctx, time.Second)
		case 5:
			return nil
		}
		return errors.New("connection lost")
	}, async.Restart(async.RestartPolicy{Interval: interval, Healthy: time.Second}))
	_, err := f.Await(context.Background(), time.Minute)
	fmt.Println(err)
	// Output:
	// call 1 is failure 1
	// call 2 is failure 2
	// call 3 is failure 1
	// call 4 is failure 2
	// <nil>
}

// A failure that another attempt cannot mend is not tried again.
func ExampleFinal() {
	f := async.Start(context.Background(), func(ctx context.Context) error {
		return async.Final(errors.New("wrong password"))
	}, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)}))
	_, err := f.Await(context.Background(), time.Minute)
	fmt.Println(err)
	// Output: wrong password
}

// A type that is closed by a channel runs its work in a scope that ends with it.
func ExampleStopOn() {
	errClosed := errors.New("connection closed")
	closing := make(chan struct{})
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}, async.Name("reader"))
		close(closing) // by whoever closes the connection
		return nil
	}, async.StopOn(closing, errClosed))
	fmt.Println(errors.Is(err, errClosed), err)
	// Output:
	// true async: scope: connection closed
}

// The work of a request ends with the session that it belongs to, too, and says why.
func ExampleStopWith() {
	errLoggedOut := errors.New("logged out")
	session, logOut := context.WithCancelCause(context.Background())
	request := context.Background()
	err := async.Scope(request, func(ctx context.Context) error {
		logOut(errLoggedOut)
		<-ctx.Done()
		return ctx.Err()
	}, async.StopWith(session))
	fmt.Println(errors.Is(err, errLoggedOut), err)
	// Output:
	// true async: scope: logged out
}

func ExampleWatch() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		record := func(ctx context.Context) (string, error) {
			<-ctx.Done() // records until it is stopped
			return "", errors.New("recording is cut off")
		}
		free := 3 // GB on the disk
		diskSpace := func(context.Context) error {
			if free--; free == 0 {
				return errors.New("disk is full")
			}
			return nil
		}
		video := async.Watch(ctx, record, async.Every(time.Millisecond), diskSpace, async.Name("camera"))
		_, err := video.Await(ctx, time.Minute)
		fmt.Println(err)
		var dog *async.WatchdogError
		fmt.Println(errors.As(err, &dog))
		return nil
	})
	// Output:
	// async: camera: watchdog: disk is full
	// 	recording is cut off
	// true
}

func ExampleHeartbeat() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		frames := 0
		stream := async.Start(ctx, func(ctx context.Context) error {
			for range 3 {
				frames++
				async.Beat(ctx)
			}
			<-ctx.Done() // then the camera hangs
			return ctx.Err()
		}, async.Name("camera"), async.Heartbeat(time.Millisecond))
		_, err := stream.Await(ctx, time.Minute)
		fmt.Println(frames, "frames")
		fmt.Println(err, errors.Is(err, async.ErrNoBeat))
		return nil
	})
	// Output:
	// 3 frames
	// async: watchdog of camera: no heartbeat for 1ms true
}

func ExampleBeat() {
	tables := map[string][]string{"users": {"Ada", "Bob"}, "prices": {"3 EUR", "4 EUR", "9 EUR"}}
	var rows atomic.Int32
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		backup := async.Start(ctx, func(ctx context.Context) error {
			for _, table := range tables {
				async.Go(ctx, func(ctx context.Context) error {
					for range table {
						rows.Add(1)     // copied
						async.Beat(ctx) // counts for the backup, which this is part of
					}
					return nil
				})
			}
			return nil
		}, async.Heartbeat(time.Minute)) // per row, however many there are
		_, err := backup.Await(ctx, 0)
		fmt.Println(rows.Load(), "rows copied:", err)
		return nil
	})
	// Output: 5 rows copied: <nil>
}

func ExampleDaemon() {
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			fmt.Println(context.Cause(ctx))
			return nil
		}, async.Daemon())
		async.Go(ctx, func(context.Context) error { return nil })
		return nil
	})
	fmt.Println(err)
	// Output:
	// async: dismissed
	// <nil>
}
