package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/ambit-go/ambit/async"
)

// An uploader uploads archives.
type uploader struct {
	client   *http.Client
	url      string
	most     int64         // bytes of an archive
	attempts int           // at an upload
	pause    time.Duration // between the first two
	limit    time.Duration // for all attempts; 0 for none
	say      func(format string, args ...any)
}

// upload uploads an archive of the files, and returns its size. It makes attempts until one succeeds, there have been
// enough, there is no use in another, the limit has passed, or ctx is done. Nothing of it goes on when it returns.
func (u *uploader) upload(ctx context.Context, files []string) (int64, error) {
	opts := []async.PollOption{async.Attempts(u.attempts), async.Name("upload")}
	if u.limit > 0 {
		opts = append(opts, async.Timeout(u.limit))
	}
	pause := async.Jitter(0.2, async.Backoff(u.pause, 30*time.Second))
	return async.Retry(ctx, pause, func(ctx context.Context) (int64, error) {
		size, err := u.attempt(ctx, files)
		if err != nil {
			u.say("%v", err)
		}
		return size, err
	}, opts...)
}

// attempt packs the files and uploads what comes out, both at once: a pipe is between them, so neither gets ahead
// of the other. Whichever fails ends the other, by the pipe, with its error; and the end of ctx ends both.
func (u *uploader) attempt(ctx context.Context, files []string) (size int64, err error) {
	r, w := io.Pipe()
	out := &limited{w: w, left: u.most}
	err = async.Scope(ctx, func(ctx context.Context) error {
		packing := async.Start(ctx, func(ctx context.Context) error {
			err := pack(ctx, out, files)
			// Without an error this is the end of the body, the only way to an upload that counts. With one the
			// request breaks off, and the server sees that the end is missing.
			_ = w.CloseWithError(err)
			return err
		}, async.Name("pack"))
		sent := u.put(ctx, r)
		_ = r.Close() // nobody reads any more: packing ends, too
		_, packed := packing.Join(ctx)
		switch {
		case sent == nil && packed != nil: // it took a piece for the whole
			return errEnded
		case packed == nil || errors.Is(packed, io.ErrClosedPipe) || ctx.Err() != nil:
			return sent
		default: // why the request broke off; it would be the same the next time
			return async.Final(packed)
		}
	}, async.Name("attempt"))
	return out.written, err
}

// errEnded says that the server has answered before it had all.
var errEnded = errors.New("the server has answered before the end")

// stay has a redirect be an answer, a refusal. It would be followed with GET, and a page that is there, as one to log in,
// says nothing about the upload.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// put sends the body, and says whether the server has taken it as a whole. A server that refuses it is not asked again.
func (u *uploader) put(ctx context.Context, body io.Reader) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, u.url, body)
	if err != nil {
		return async.Final(err)
	}
	request.Header.Set("Content-Type", "application/gzip")
	answer, err := u.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // so that the connection can be used again
	switch code := answer.StatusCode; {
	case code < 300:
		return nil
	case code >= 500, code == http.StatusRequestTimeout, code == http.StatusTooManyRequests:
		return fmt.Errorf("PUT %s: %q", u.url, answer.Status)
	default:
		return async.Final(fmt.Errorf("PUT %s: %q", u.url, answer.Status))
	}
}

// A limited writer takes no more than it has left.
type limited struct {
	w             io.Writer
	left, written int64
}

func (l *limited) Write(p []byte) (int, error) {
	if int64(len(p)) > l.left {
		return 0, errTooLarge
	}
	n, err := l.w.Write(p)
	l.left -= int64(n)
	l.written += int64(n)
	return n, err
}
