//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A fake is a server whose connections are played one after the other. It runs
// in a bubble, over pipes, so no time passes but that of the follower.
type fake struct {
	ctx    context.Context
	begin  time.Time
	plays  []play
	dialed []time.Duration // when each was asked for
	from   []int64         // the offset asked for on each
}

// A play is what a server says on a connection before it closes it; nil is one
// that cannot be made.
type play func(conn net.Conn)

// says is a play of words that are written as they are.
func says(words ...string) play {
	return func(conn net.Conn) {
		for _, w := range words {
			_, _ = io.WriteString(conn, w)
		}
	}
}

var errRefused = errors.New("refused")

func (s *fake) dial(context.Context) (net.Conn, error) {
	s.dialed = append(s.dialed, time.Since(s.begin).Truncate(time.Microsecond))
	if len(s.plays) == 0 || s.plays[0] == nil {
		s.plays = s.plays[min(1, len(s.plays)):]
		return nil, errRefused
	}
	p := s.plays[0]
	s.plays = s.plays[1:]
	theirs, ours := net.Pipe()
	async.Go(s.ctx, func(context.Context) error {
		defer func() { _ = ours.Close() }()
		from, err := readRequest(bufio.NewReader(ours))
		s.from = append(s.from, from)
		if err == nil {
			p(ours)
		}
		return nil
	})
	return theirs, nil
}

// follows has a follower follow what is played, with pauses of 1, 2, 4... up to
// 8 s, and returns what it has emitted.
func follows(t *testing.T, change func(*follower), plays ...play) (got []string, s *fake, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s = &fake{begin: time.Now(), plays: plays}
		err = async.Scope(t.Context(), func(ctx context.Context) error {
			s.ctx = ctx
			f := &follower{
				dial:     s.dial,
				emit:     func(p []byte) error { got = append(got, string(p)); return nil },
				report:   func(string, ...any) {},
				pause:    async.Backoff(time.Second, 8*time.Second),
				attempts: 10,
				silence:  time.Minute,
			}
			if change != nil {
				change(f)
			}
			return f.follow(ctx)
		})
	})
	return got, s, err
}

func TestEveryByteComesOnceAndInLines(t *testing.T) {
	for _, tc := range []struct {
		name  string
		plays []play
		want  []string
		from  []int64
	}{
		{"one connection", []play{says("DATA 0 4\na\nb\n", "END 4\n")}, []string{"a\nb\n"}, []int64{0}},
		{"an empty log", []play{says("END 0\n")}, nil, []int64{0}},
		{"a last line without a newline", []play{says("DATA 0 5\na\nb c", "END 5\n")}, []string{"a\n", "b c"}, []int64{0}},
		{"which was there when the connection broke", []play{says("DATA 0 3\na\nb"), says("END 3\n")}, []string{"a\n", "b"}, []int64{0, 3}},
		{"a line in three connections", []play{says("DATA 0 1\na"), says("DATA 1 1\nb"), says("DATA 2 2\nc\n", "END 4\n")}, []string{"abc\n"}, []int64{0, 1, 2}},
		{"cut within a frame", []play{says("DATA 0 10\nabc"), says("DATA 3 7\ndefghi\n", "END 10\n")}, []string{"abcdefghi\n"}, []int64{0, 3}},
		{"cut within the head of a frame", []play{says("DATA 0 1\na", "DATA 1 "), says("DATA 1 1\nb", "END 2\n")}, []string{"ab"}, []int64{0, 1}},
		{"cut within a number", []play{says("DATA 0 1\na", "DATA 1 1"), says("DATA 1 11\n0123456789\n", "END 12\n")}, []string{"a0123456789\n"}, []int64{0, 1}},
		{"cut within the end", []play{says("DATA 0 1\na", "END 1"), says("END 1\n")}, []string{"a"}, []int64{0, 1}},
		{"what is known comes again", []play{says("DATA 0 3\nab\n"), says("DATA 0 5\nab\ncd", "END 5\n")}, []string{"ab\n", "cd"}, []int64{0, 3}},
		{"nothing else comes again", []play{says("DATA 0 3\nab\n"), says("DATA 0 2\nab", "DATA 2 1\n\n"), says("END 3\n")}, []string{"ab\n"}, []int64{0, 3, 3}},
		{"no server at first", []play{nil, nil, says("DATA 0 1\na", "END 1\n")}, []string{"a"}, []int64{0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, s, err := follows(t, nil, tc.plays...)
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
			assert.Equal(t, tc.from, s.from)
		})
	}
}

func TestLongLineComesInPieces(t *testing.T) {
	long := strings.Repeat("x", 3*longest+10)
	got, _, err := follows(t, nil, says(fmt.Sprintf("DATA 0 %d\n%s", len(long), long), fmt.Sprintf("END %d\n", len(long))))
	require.NoError(t, err)
	assert.Equal(t, long, strings.Join(got, ""))
	for _, piece := range got {
		assert.LessOrEqual(t, len(piece), longest+4096)
	}
}

func TestServerThatCannotBeTrusted(t *testing.T) {
	for name, tc := range map[string]struct{ says, want string }{
		"a gap":         {"DATA 5 1\nx", "bytes 0 to 5 of the log were left out"},
		"an early end":  {"DATA 0 1\nxEND 2\n", "ended with byte 2, but 1 have come"},
		"an error":      {"ERROR no such byte\n", `the server says "ERROR no such byte\n"`},
		"another voice": {"HTTP/1.1 400 Bad Request\r\n", "the server says"},
		"minus":         {"DATA 0 -1\n", "the server says"},
		"words behind":  {"DATA 0 3 junk\nabcEND 3\n", `the server says "DATA 0 3 junk\n"`},
		"other spaces":  {"DATA   0   3\nabcEND 3\n", `the server says "DATA   0   3\n"`},
		"other numbers": {"DATA +0 03\nabcEND 3\n", `the server says "DATA +0 03\n"`},
		"another end":   {"END 0\r\n", `the server says "END 0\r\n"`},
		"endless line":  {strings.Repeat("x", 10000), "speaks something else"},
	} {
		t.Run(name, func(t *testing.T) {
			_, s, err := follows(t, nil, says(tc.says))
			require.ErrorContains(t, err, tc.want)
			assert.Len(t, s.dialed, 1, "there is no use in trying again")
		})
	}
}

func TestPauseGrowsUntilSomethingComes(t *testing.T) {
	broken := says("DATA 0 0\n")
	_, s, err := follows(t, nil,
		nil, nil, broken, nil, nil, // 1, 2, 4, 8, 8 s
		says("DATA 0 1\na"), // 1 s
		broken, nil,         // 2, 4 s
		says("DATA 0 1\na"), // known already: 8 s
		says("END 1\n"))
	require.NoError(t, err)
	var pauses []time.Duration
	for i, at := range s.dialed[1:] {
		pauses = append(pauses, (at-s.dialed[i])/time.Second)
	}
	assert.Equal(t, []time.Duration{1, 2, 4, 8, 8, 1, 2, 4, 8}, pauses)
}

func TestGivesUpWhenNothingComes(t *testing.T) {
	_, s, err := follows(t, func(f *follower) { f.attempts = 3 }, says("DATA 0 1\na"))
	require.ErrorIs(t, err, errRefused)
	require.ErrorContains(t, err, "3 attempts in a row have brought nothing")
	assert.Len(t, s.dialed, 4)
}

var errStop = errors.New("stop")

// The clock of the bubble stands still while anybody can run, so prompt means:
// at the very instant.
func TestStopDuringAPauseIsPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		begin := time.Now()
		time.AfterFunc(10*time.Minute, func() { cancel(errStop) })
		err := async.Scope(ctx, func(ctx context.Context) error {
			s := &fake{ctx: ctx, begin: begin}
			f := &follower{dial: s.dial, report: func(string, ...any) {}, pause: async.Every(time.Hour), attempts: 10}
			return f.follow(ctx)
		})
		require.ErrorIs(t, err, errStop)
		assert.Equal(t, 10*time.Minute, time.Since(begin))
	})
}

func TestStopDuringAReadIsPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		begin := time.Now()
		time.AfterFunc(10*time.Second, func() { cancel(errStop) })
		err := async.Scope(ctx, func(ctx context.Context) error {
			s := &fake{ctx: ctx, begin: begin, plays: []play{waits}}
			f := &follower{dial: s.dial, report: func(string, ...any) {}, pause: async.Every(time.Hour), silence: time.Hour}
			return f.follow(ctx)
		})
		require.ErrorIs(t, err, errStop)
		assert.Equal(t, 10*time.Second, time.Since(begin))
	})
}

// waits is a play of a server that says nothing until the client has gone.
func waits(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

func TestSilentConnectionIsBroken(t *testing.T) {
	chatty := func(conn net.Conn) {
		for range 10 { // silent for less than a minute each time
			time.Sleep(50 * time.Second)
			if writeData(conn, 0, nil) != nil {
				return
			}
		}
		waits(conn)
	}
	_, s, err := follows(t, nil, chatty, says("END 0\n"))
	require.NoError(t, err)
	assert.Equal(t, []time.Duration{0, 500*time.Second + time.Minute + time.Second}, s.dialed)
}

// A frame that takes longer than a connection may be silent, while some of it
// comes all the time.
func TestSlowConnectionIsNotBroken(t *testing.T) {
	slow := func(conn net.Conn) {
		for _, c := range "DATA 0 10\n0123456789END 10\n" {
			time.Sleep(50 * time.Second)
			_, _ = io.WriteString(conn, string(c))
		}
	}
	got, s, err := follows(t, nil, slow)
	require.NoError(t, err)
	assert.Equal(t, []string{"0123456789"}, got)
	assert.Len(t, s.dialed, 1)
}

// A consumer that has gone ends it all, and is not called again.
func TestConsumerThatHasGoneStopsTheFollower(t *testing.T) {
	var calls int
	_, s, err := follows(t, func(f *follower) {
		f.emit = func([]byte) error { calls++; return io.ErrClosedPipe }
	}, func(conn net.Conn) {
		at := int64(0)
		for writeData(conn, at, []byte("line\n")) == nil { // for ever, if it is read
			at += 5
		}
	})
	require.ErrorIs(t, err, io.ErrClosedPipe)
	assert.Equal(t, 1, calls)
	assert.Len(t, s.dialed, 1)
}

// Whatever a server says, there is an error or the end, and nothing is emitted
// that it has not sent.
func FuzzServer(f *testing.F) {
	for _, seed := range []string{"DATA 0 4\na\nb\nEND 4\n", "DATA 0 9223372036854775807\nx", "DATA 9223372036854775807 9223372036854775807\nEND 0\n", "ERROR no\n", "END -1\n", "\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, said string) {
		var got strings.Builder
		x := &follower{emit: func(p []byte) error { got.Write(p); return nil }}
		r := bufio.NewReaderSize(strings.NewReader(said), 4096)
		for over, err := false, error(nil); !over && err == nil; {
			over, err = x.next(r)
		}
		assert.Equal(t, x.offset, int64(got.Len()+len(x.line)))
		assert.LessOrEqual(t, got.Len(), len(said))
	})
}

func TestRequestThatIsNone(t *testing.T) {
	for _, line := range []string{"FROM -1\n", "FROM\n", "FROM 1 2\n", "FROM  1\n", "FROM 1\r\n", "GET / HTTP/1.1\r\n", "\n"} {
		_, err := readRequest(bufio.NewReader(strings.NewReader(line)))
		assert.EqualError(t, err, fmt.Sprintf("the client says %q", line))
	}
	from, err := readRequest(bufio.NewReader(strings.NewReader("FROM 17\n")))
	require.NoError(t, err)
	assert.Equal(t, int64(17), from)
}
