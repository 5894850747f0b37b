package taskqueue_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
)

// A mail is sent at its time. It fails once, and is sent then.
func Example() {
	q, _ := taskqueue.New(memstore.New()) // sqlstore and redisstore keep what they are given
	ctx, stop := context.WithCancel(context.Background())

	id, err := q.Enqueue(ctx, taskqueue.Task{Type: "mail", Payload: []byte("ada"), Delay: 20 * time.Millisecond})
	if err != nil {
		fmt.Println(err)
	}
	go func() {
		defer stop() // as a signal would
		i, _ := q.Wait(ctx, id)
		fmt.Println(i.State, "after", i.Failures, "failure:", i.LastError)
	}()
	err = q.Work(ctx, taskqueue.Handlers{"mail": func(ctx context.Context, c *taskqueue.Claim) error {
		if c.Attempt == 1 {
			return taskqueue.RetryAfter(10*time.Millisecond, fmt.Errorf("the server is busy"))
		}
		fmt.Printf("mail to %s, run %d\n", c.Payload, c.Attempt)
		return nil
	}})
	fmt.Println(err)
	// Output:
	// mail to ada, run 2
	// done after 1 failure: the server is busy
	// <nil>
}

func ExampleNew() {
	q, err := taskqueue.New(memstore.New())
	fmt.Println(q.Name(), err)
	_, err = taskqueue.New(nil)
	fmt.Println(err)
	// Output:
	// default <nil>
	// taskqueue: store: it is nil: pass memstore.New(), or what sqlstore.OpenFile, sqlstore.New or redisstore.New return
}

// The packages of stores that are imported say which URLs there are.
func ExampleOpen() {
	store, err := taskqueue.Open(context.Background(), "mem:")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = store.Close() }()
	_, err = taskqueue.Open(context.Background(), "tasks.db")
	fmt.Println(err)
	// Output: taskqueue: store: "tasks.db" has no scheme: write it as sqlite:tasks.db
}

// A store of another package makes itself known in its init.
func ExampleRegister() {
	taskqueue.Register("example", func(ctx context.Context, url string) (taskqueue.Store, error) {
		return memstore.New(), nil
	})
	store, err := taskqueue.Open(context.Background(), "example:anything")
	fmt.Println(store != nil, err)
	// Output: true <nil>
}

func ExamplePayloadLimit() {
	q, _ := taskqueue.New(memstore.New(), taskqueue.PayloadLimit(10))
	_, err := q.Enqueue(context.Background(), taskqueue.Task{Type: "t", Payload: []byte("more than ten bytes")})
	fmt.Println(err)
	// Output: taskqueue: Payload: it has 19 bytes, at most 10 are allowed: store it elsewhere and enqueue where it is, or raise PayloadLimit
}

func ExampleObserve() {
	q, _ := taskqueue.New(memstore.New(), taskqueue.Observe(func(e taskqueue.Event) {
		fmt.Println(e.Kind, e.Type, e.Err)
	}))
	ctx := context.Background()
	_, _ = q.Enqueue(ctx, taskqueue.Task{Type: "mail", MaxFailures: 1})
	_ = q.Work(ctx, taskqueue.Handlers{"mail": func(context.Context, *taskqueue.Claim) error {
		return fmt.Errorf("no such address")
	}}, taskqueue.WorkUntilEmpty())
	// Output:
	// started mail <nil>
	// failed mail no such address
	// dead mail no such address
}

// A bill may be sent once an hour; while one waits or is sent no other is added.
func ExampleQueue_Enqueue() {
	q, _ := taskqueue.New(memstore.New())
	ctx := context.Background()
	bill := taskqueue.Task{ID: "bill-7-2026-01", Type: "bill", UniqueKey: "customer 7"}
	fmt.Println(q.Enqueue(ctx, bill))
	fmt.Println(q.Enqueue(ctx, bill)) // the same ID again: as if the first answer had been lost
	bill.ID = "bill-7-2026-02"
	fmt.Println(q.Enqueue(ctx, bill))
	// Output:
	// bill-7-2026-01 <nil>
	// bill-7-2026-01 <nil>
	//  taskqueue: the unique key "customer 7" is held by task bill-7-2026-01
}

func ExampleQueue_EnqueueAll() {
	q, _ := taskqueue.New(memstore.New())
	results, err := q.EnqueueAll(context.Background(), []taskqueue.Task{
		{ID: "a", Type: "mail", UniqueKey: "ada"},
		{ID: "b", Type: "mail", UniqueKey: "ada"},
		{ID: "a", Type: "mail"},
	})
	for _, r := range results {
		fmt.Println(r.Verdict, r.ID)
	}
	fmt.Println(err)
	// Output:
	// added a
	// duplicate a
	// exists a
	// <nil>
}

func ExampleVerdict_String() {
	fmt.Println(taskqueue.Added, taskqueue.Exists, taskqueue.Duplicate)
	// Output: added exists duplicate
}

func ExampleQueue_In() {
	q, _ := taskqueue.New(memstore.New())
	mail := q.In("mail")
	_, _ = mail.Enqueue(context.Background(), taskqueue.Task{ID: "a", Type: "welcome"})
	_, err := q.Get(context.Background(), "a")
	fmt.Println(mail.Name(), err)
	// Output: mail taskqueue: there is no such task
}

func ExampleQueue_Name() {
	q, _ := taskqueue.New(memstore.New())
	fmt.Println(q.Name(), q.In("mail").Name())
	// Output: default mail
}

// One call works on two queues. When it returns nothing of it runs.
func ExampleQueue_Work() {
	q, _ := taskqueue.New(memstore.New())
	ctx := context.Background()
	_, _ = q.In("mail").Enqueue(ctx, taskqueue.Task{Type: "welcome", Payload: []byte("ada")})
	err := q.Work(ctx, taskqueue.Handlers{
		"welcome": func(ctx context.Context, c *taskqueue.Claim) error {
			fmt.Printf("welcome, %s\n", c.Payload)
			return nil
		},
	}, taskqueue.Queues(map[string]int{"mail": 3, "default": 1}), taskqueue.WorkUntilEmpty())
	fmt.Println(err)
	// Output:
	// welcome, ada
	// <nil>
}

func ExampleQueue_Every() {
	q, _ := taskqueue.New(memstore.New())
	fmt.Println(q.Every("cleanup", "@every 90s", taskqueue.Task{Type: "cleanup"}))
	fmt.Println(q.Every("report", "30 9 * * MON-FRI", taskqueue.Task{Type: "report"}, taskqueue.InZone(time.UTC), taskqueue.CatchUp()))
	fmt.Println(q.Every("backup", "at night", taskqueue.Task{Type: "backup"}) != nil)
	// Output:
	// <nil>
	// <nil>
	// true
}

func ExampleInZone() {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		fmt.Println(err)
		return
	}
	q, _ := taskqueue.New(memstore.New())
	fmt.Println(q.Every("report", "30 9 * * *", taskqueue.Task{Type: "report"}, taskqueue.InZone(berlin)))
	// Output: <nil>
}

// A report that was missed over the weekend is made on Monday, once.
func ExampleCatchUp() {
	q, _ := taskqueue.New(memstore.New())
	fmt.Println(q.Every("report", "@daily", taskqueue.Task{Type: "report"}, taskqueue.CatchUp()))
	// Output: <nil>
}

func ExampleQueue_Periodic() {
	q, _ := taskqueue.New(memstore.New())
	ctx, stop := context.WithCancel(context.Background())
	_ = q.Every("pulse", "@every 1s", taskqueue.Task{Type: "pulse"})
	_ = q.Work(ctx, taskqueue.Handlers{"pulse": func(context.Context, *taskqueue.Claim) error {
		stop()
		return nil
	}})
	all, err := q.Periodic(context.Background())
	for _, p := range all {
		fmt.Println(p.Name, p.Schedule, !p.Last.IsZero())
	}
	fmt.Println(err)
	// Output:
	// pulse @every 1s true
	// <nil>
}

// A deploy has its new schedule taken over at its start. The date says so also where the time
// at which a program was made does not.
func ExampleDefinedAt() {
	q, _ := taskqueue.New(memstore.New())
	fmt.Println(q.Every("report", "@daily", taskqueue.Task{Type: "report"},
		taskqueue.DefinedAt(time.Date(2026, time.November, 24, 0, 0, 0, 0, time.UTC))))
	// Output: <nil>
}

// The schedule of a name is the newest that a program has said. It is forgotten, and the next
// worker that starts or adds a tick decides anew.
func ExampleQueue_Unschedule() {
	q, _ := taskqueue.New(memstore.New())
	fmt.Println(q.Unschedule(context.Background(), "pulse"))
	// Output: false <nil>
}
