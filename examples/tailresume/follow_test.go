package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// A play is what a server says on one connection.
type play struct {
	at   int64
	data string
	end  error // io.EOF is the end of the log
	code int   // 0: 206
}

var errCut = errors.New("cut")

// plays are the connections of a server, one after the other. When there are no more
// none can be made.
type plays struct {
	left   []play
	from   []string        // what was asked for on each
	dialed []time.Duration // when
	begin  time.Time
}

func (s *plays) RoundTrip(r *http.Request) (*http.Response, error) {
	s.from = append(s.from, r.Header.Get("Range"))
	s.dialed = append(s.dialed, time.Since(s.begin))
	if len(s.left) == 0 {
		return nil, errCut
	}
	p := s.left[0]
	s.left = s.left[1:]
	if p.code == 0 {
		p.code = http.StatusPartialContent
	}
	framing := []string{"chunked"}
	if p.code == http.StatusOK { // of a server of HTTP 1.0
		framing = nil
	}
	body := io.MultiReader(strings.NewReader(p.data), broken{p.end})
	return &http.Response{StatusCode: p.code, Status: strconv.Itoa(p.code), ContentLength: -1, TransferEncoding: framing, ProtoMajor: 1,
		Header: http.Header{"Log-Offset": {strconv.FormatInt(p.at, 10)}}, Body: io.NopCloser(body)}, nil
}

type broken struct{ error }

func (b broken) Read([]byte) (int, error) { return 0, b.error }

type writer func(p []byte) error

func (w writer) Write(p []byte) (int, error) { return len(p), w(p) }

// follows has a follower follow what is played, with pauses of 1, 2, 4 and 8 s.
func follows(t *testing.T, left ...play) (got []string, s *plays, err error) {
	synctest.Test(t, func(t *testing.T) {
		s = &plays{left: left, begin: time.Now()}
		f := &follower{
			client:   &http.Client{Transport: s},
			url:      "http://server",
			out:      writer(func(p []byte) error { got = append(got, string(p)); return nil }),
			pause:    async.Backoff(time.Second, 8*time.Second),
			attempts: 5,
		}
		err = f.follow(t.Context())
	})
	return got, s, err
}

func TestEveryByteComesOnceAndInLines(t *testing.T) {
	for name, tc := range map[string]struct {
		plays []play
		want  []string
		from  string
	}{
		"one connection":                 {[]play{{0, "a\nb\n", io.EOF, 0}}, []string{"a\nb\n"}, "0-"},
		"an empty log":                   {[]play{{0, "", io.EOF, 0}}, nil, "0-"},
		"a last line without a newline":  {[]play{{0, "a\nb c", io.EOF, 0}}, []string{"a\n", "b c"}, "0-"},
		"and then the connection breaks": {[]play{{0, "a\nb", errCut, 0}, {3, "", io.EOF, 0}}, []string{"a\n", "b"}, "0- 3-"},
		"a line in three connections":    {[]play{{0, "a", errCut, 0}, {1, "b", errCut, 0}, {2, "c\n", io.EOF, 0}}, []string{"abc\n"}, "0- 1- 2-"},
		"what is known comes again":      {[]play{{0, "ab\n", errCut, 0}, {0, "ab\ncd", io.EOF, 0}}, []string{"ab\n", "cd"}, "0- 3-"},
		"nothing else comes again":       {[]play{{0, "ab\n", errCut, 0}, {0, "ab", errCut, 0}, {0, "ab\n", io.EOF, 0}}, []string{"ab\n"}, "0- 3- 3-"},
		"no server for a time":           {[]play{{0, "", io.EOF, 503}, {0, "a", io.EOF, 0}}, []string{"a"}, "0- 0-"},
	} {
		t.Run(name, func(t *testing.T) {
			got, s, err := follows(t, tc.plays...)
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
			assert.Equal(t, tc.from, strings.ReplaceAll(strings.Join(s.from, " "), "bytes=", ""))
		})
	}
}

// A gap is an error, and so is what will never be any better: there is no other
// attempt.
func TestWhatCannotBeResumedEndsIt(t *testing.T) {
	for says, p := range map[string]play{
		`byte 2 was asked for, and the answer begins with "3"`:             {3, "d", io.EOF, 0},
		"the log has no byte 2: it is not the one that was begun with":     {0, "", io.EOF, 416},
		"the end of the log could not be told from that of the connection": {0, "", io.EOF, 200},
		`"403"`: {0, "", io.EOF, 403},
	} {
		got, s, err := follows(t, play{0, "a\n", errCut, 0}, p)
		assert.EqualError(t, err, says)
		assert.Equal(t, []string{"a\n"}, got)
		assert.Len(t, s.from, 2)
	}
}

// The pauses grow, and start again with the first byte that is new; so many attempts
// that bring nothing are enough.
func TestPausesGrowUntilSomethingComes(t *testing.T) {
	_, s, err := follows(t, play{0, "", errCut, 0}, play{0, "", errCut, 0}, play{0, "a", errCut, 0})
	assert.ErrorContains(t, err, "5 attempts in a row have brought nothing; the last: ")
	assert.ErrorIs(t, err, errCut)
	var seconds []float64
	for i := range s.dialed[1:] {
		seconds = append(seconds, (s.dialed[i+1] - s.dialed[i]).Seconds())
	}
	assert.Equal(t, []float64{1, 2, 1, 2, 4, 8, 8}, seconds)
}

func TestALongLineComesInPieces(t *testing.T) {
	long := strings.Repeat("x", 3*longest+10)
	got, _, err := follows(t, play{0, long, io.EOF, 0})
	require.NoError(t, err)
	assert.Equal(t, long, strings.Join(got, ""))
	for _, piece := range got {
		assert.LessOrEqual(t, len(piece), longest+4096)
	}
}

// A consumer that takes no more is no broken connection.
func TestAConsumerThatFailsEndsIt(t *testing.T) {
	full := errors.New("full")
	s := &plays{left: []play{{0, "a\n", errCut, 0}}}
	f := &follower{client: &http.Client{Transport: s}, url: "http://server", out: writer(func([]byte) error { return full })}
	assert.ErrorIs(t, f.follow(context.Background()), full)
	assert.Len(t, s.from, 1)
}
