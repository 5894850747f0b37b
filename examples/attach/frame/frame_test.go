package frame

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	var line, out, errs, wantOut, wantErr bytes.Buffer
	m := NewMux(&line)
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		p := make([]byte, rnd.IntN(3*payload))
		for i := range p {
			p[i] = byte(rnd.Uint32())
		}
		w, want := m.Stream(Stdout), &wantOut
		if rnd.IntN(2) == 0 {
			w, want = m.Stream(Stderr), &wantErr
		}
		n, err := w.Write(p)
		require.NoError(t, err)
		require.Equal(t, len(p), n)
		want.Write(p)
	}
	require.NoError(t, Copy(&out, &errs, iotest.HalfReader(&line)))
	assert.Equal(t, wantOut.Bytes(), out.Bytes())
	assert.Equal(t, wantErr.Bytes(), errs.Bytes())
}

func TestAFrameIsEightBytesAndThePayload(t *testing.T) {
	var line bytes.Buffer
	_, err := NewMux(&line).Stream(Stderr).Write([]byte("oops"))
	require.NoError(t, err)
	assert.Equal(t, []byte{2, 0, 0, 0, 0, 0, 0, 4, 'o', 'o', 'p', 's'}, line.Bytes())
}

func TestAnEndWithinAFrameIsAnError(t *testing.T) {
	whole := []byte{1, 0, 0, 0, 0, 0, 0, 2, 'h', 'i'}
	for cut := range len(whole) + 1 {
		var out bytes.Buffer
		err := Copy(&out, io.Discard, bytes.NewReader(whole[:cut]))
		if cut == 0 || cut == len(whole) {
			assert.NoError(t, err, cut)
		} else {
			assert.ErrorIs(t, err, io.ErrUnexpectedEOF, cut)
		}
		assert.Equal(t, string(whole[min(header, cut):cut]), out.String(), "what has come is passed on")
	}
}

func TestMessagesAndStrangersAreErrors(t *testing.T) {
	err := Copy(io.Discard, io.Discard, bytes.NewReader([]byte{3, 0, 0, 0, 0, 0, 0, 3, 'b', 'a', 'd'}))
	system, ok := errors.AsType[*SystemError](err)
	require.True(t, ok)
	assert.Equal(t, "bad", system.Message)
	assert.ErrorContains(t, Copy(io.Discard, io.Discard, bytes.NewReader([]byte("HTTP/1.1"))), "no framed connection")
}

func TestAWriterThatFailsEndsIt(t *testing.T) {
	r, w := io.Pipe()
	_ = r.Close()
	assert.ErrorIs(t, Copy(w, io.Discard, bytes.NewReader([]byte{1, 0, 0, 0, 0, 0, 0, 1, 'x'})), io.ErrClosedPipe)
	_, err := NewMux(w).Stream(Stdout).Write([]byte("x"))
	assert.ErrorIs(t, err, io.ErrClosedPipe)
}

func FuzzCopy(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 2, 'h', 'i', 2, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{3, 0, 0, 0, 255, 255, 255, 255, 'b'})
	f.Fuzz(func(t *testing.T, data []byte) {
		var out bytes.Buffer
		_ = Copy(&out, &out, bytes.NewReader(data))
		if out.Len() > len(data) {
			t.Errorf("%d bytes of %d", out.Len(), len(data))
		}
	})
}
