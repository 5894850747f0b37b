package memkv_test

import (
	"context"
	"fmt"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

func ExampleNew() {
	ctx := context.Background()
	kv := memkv.New()
	defer kv.Close()
	_, err := kv.Commit(ctx, []kvqueue.Guard{{Key: []byte("a"), Is: kvqueue.Absent}}, []kvqueue.Write{{Key: []byte("a"), Value: []byte("1")}})
	fmt.Println(err)
	results, _, err := kv.Read(ctx, kvqueue.Range{Begin: []byte("a")})
	fmt.Printf("%s %v\n", results[0].Pairs[0].Value, err)
	// Output:
	// <nil>
	// 1 <nil>
}

// The answer to the first transaction that adds an item is lost, and the queue finds out
// that it was done.
func ExampleFaults() {
	ctx := context.Background()
	lost := 0
	kv := memkv.New(memkv.Faults(func(_ []kvqueue.Guard, writes []kvqueue.Write) memkv.Fault {
		if len(writes) == 3 && lost == 0 {
			lost++
			return memkv.Unanswered
		}
		return memkv.None
	}))
	defer kv.Close()
	q, err := kvqueue.Open(ctx, kv, "orders")
	if err != nil {
		panic(err)
	}
	defer q.Close(ctx)
	pos, err := q.Enqueue(ctx, []byte("order 1"))
	fmt.Println(pos.Items, err, lost)
	n, err := q.Len(ctx)
	fmt.Println(n.Ready, err)
	// Output:
	// 1 <nil> 1
	// 1 <nil>
}

// A store of any kind is made to lose an answer.
func ExampleNewFaulty() {
	ctx := context.Background()
	inner := memkv.New() // or a file, or a cluster
	defer inner.Close()
	kv := memkv.NewFaulty(inner, func([]kvqueue.Guard, []kvqueue.Write) memkv.Fault { return memkv.Unanswered })
	defer kv.Wait()
	_, err := kv.Commit(ctx, nil, []kvqueue.Write{{Key: []byte("a"), Value: []byte("1")}})
	fmt.Println(err)
	results, _, err := kv.Read(ctx, kvqueue.Range{Begin: []byte("a")})
	fmt.Printf("%s %v\n", results[0].Pairs[0].Value, err)
	// Output:
	// kvqueue: it is not known whether the transaction was done
	// 1 <nil>
}
