package jobqueue_test

import (
	"context"
	"testing"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/jobqueue"
)

func BenchmarkAddTakeDone(b *testing.B) {
	b.Run("ack", func(b *testing.B) {
		_ = async.Scope(context.Background(), func(ctx context.Context) error {
			q := jobqueue.New[int]()
			b.ReportAllocs()
			for b.Loop() {
				q.Add(1)
				jobs, err := q.Take(ctx, 1)
				if err != nil {
					b.Fatal(err)
				}
				q.Ack(ctx, jobs[0])
			}
			return nil
		})
	})
	b.Run("do", func(b *testing.B) {
		q := jobqueue.New[int]()
		ctx := context.Background()
		b.ReportAllocs()
		for b.Loop() {
			q.Add(1)
			if err := q.Do(ctx, 1, func(context.Context, []int) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkDuplicate(b *testing.B) {
	q := jobqueue.New[int]()
	q.Add(1)
	b.ReportAllocs()
	for b.Loop() {
		if q.Add(1) {
			b.Fatal("added twice")
		}
	}
}
