package locks_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/memstore"
)

// The cost that a manager adds to its store: the one in memory costs about a microsecond.

func BenchmarkWith(b *testing.B) {
	m, err := locks.New(memstore.New())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := m.With(b.Context(), "k", func(context.Context) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAcquireRelease(b *testing.B) {
	m, err := locks.New(memstore.New())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		h, err := m.Acquire(b.Context(), "k")
		if err != nil {
			b.Fatal(err)
		}
		if err := h.Release(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkErr(b *testing.B) {
	m, err := locks.New(memstore.New())
	if err != nil {
		b.Fatal(err)
	}
	h, err := m.Acquire(b.Context(), "k")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := h.Err(); err != nil {
			b.Fatal(err)
		}
	}
	_ = h.Release(b.Context())
}

// BenchmarkHeld is Acquire and Release beside many locks that are held.
func BenchmarkHeld(b *testing.B) {
	m, err := locks.New(memstore.New())
	if err != nil {
		b.Fatal(err)
	}
	for i := range 10_000 {
		h, err := m.Acquire(b.Context(), fmt.Sprint("held", i))
		if err != nil {
			b.Fatal(err)
		}
		defer h.Release(b.Context())
	}
	for b.Loop() {
		h, err := m.Acquire(b.Context(), "k")
		if err != nil {
			b.Fatal(err)
		}
		if err := h.Release(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
