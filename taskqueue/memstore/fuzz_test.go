package memstore_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-go/ambit/taskqueue/memstore"
	"github.com/ambit-go/ambit/taskqueue/taskqueuetest"
)

// run runs a program in a bubble, where time costs nothing.
func run(t *testing.T, text []byte) (err error) {
	synctest.Test(t, func(*testing.T) {
		s := memstore.New()
		err = taskqueuetest.Program(s, text, 3*time.Second, true)
		if e := s.Close(); err == nil {
			err = e
		}
	})
	return err
}

func FuzzStore(f *testing.F) {
	for seed := range uint64(10) {
		f.Add(taskqueuetest.RandomText(seed, 300))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 2000 {
			t.Skip("a long program finds no more than a short one")
		}
		if err := run(t, text); err != nil {
			t.Fatal(err)
		}
	})
}

func TestRandomPrograms(t *testing.T) {
	for seed := range uint64(20) {
		text := taskqueuetest.RandomText(seed, 600)
		if err := run(t, text); err != nil {
			text = taskqueuetest.Shrink(text, func(text []byte) bool { return run(t, text) != nil })
			t.Fatalf("seed %d, as short as it gets: %v\ntext %q", seed, run(t, text), text)
		}
	}
}
