package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A source has data without an end and counts the bytes that were taken.
type source struct{ taken int }

func (s *source) Read(p []byte) (int, error) { s.taken += len(p); return len(p), nil }

// A gate is a writer that writes when it is told to, so many times.
type gate chan struct{}

func (g gate) Write(p []byte) (int, error) { <-g; return len(p), nil }

func keep(to *bytes.Buffer, block []byte) error { _, err := to.Write(block); return err }

// However long the output is not taken, no more is read than the blocks hold; for
// each block that is taken one is read.
func TestNoMoreIsReadThanThereAreBlocks(t *testing.T) {
	for _, blocks := range []int{1, 2, 7} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			in, out := new(source), make(gate)
			s := &stream{in: in, work: keep, out: out, blocks: blocks, size: 10}
			ended := make(chan error, 1)
			go func() { ended <- s.run(ctx) }()
			for taken := range 5 {
				synctest.Wait() // for ever, if need be
				assert.Equal(t, 10*(blocks+taken), in.taken)
				out <- struct{}{}
			}
			stop()
			close(out)
			assert.ErrorIs(t, <-ended, context.Canceled)
		})
	}
}

// The first block takes longest: the others are worked on beside it, and written
// behind it.
func TestBlocksAreWorkedOnAtOnceAndKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, at := make(chan struct{}), make(chan byte, 4)
		work := func(to *bytes.Buffer, block []byte) error {
			at <- block[0]
			if block[0] == '0' {
				<-first
			}
			return keep(to, block)
		}
		out := new(bytes.Buffer)
		s := &stream{in: bytes.NewBufferString("0123"), work: work, out: out, blocks: 4, size: 1}
		ended := make(chan error, 1)
		go func() { ended <- s.run(t.Context()) }()
		synctest.Wait()
		assert.Len(t, at, 4)
		assert.Empty(t, out.String())
		close(first)
		require.NoError(t, <-ended)
		assert.Equal(t, "0123", out.String())
	})
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error)  { return 0, b.err }
func (b broken) Write([]byte) (int, error) { return 0, b.err }

// A block that was read before the failure may be written or not; run returns the failure,
// and when it has nothing runs.
func TestAFailureOfAnyStageStopsTheOthers(t *testing.T) {
	boom := errors.New("boom")
	for name, s := range map[string]*stream{
		"read":  {in: broken{boom}, work: keep, out: io.Discard},
		"work":  {in: new(source), work: func(*bytes.Buffer, []byte) error { return boom }, out: io.Discard},
		"write": {in: new(source), work: keep, out: broken{boom}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s.blocks, s.size = 3, 10
				assert.ErrorIs(t, s.run(t.Context()), boom)
			})
		})
	}
}
