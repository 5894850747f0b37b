package cookbook

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
)

// FollowLog reads the log at url while it grows and calls emit for every line,
// on the calling goroutine, until the server ends the body as it should or
// emit fails. When the connection breaks it goes on where it was; ten attempts
// in a row that bring nothing end it. A line may end without a newline only at
// the end of the log.
func FollowLog(ctx context.Context, client *http.Client, url string, emit func(line string) error) error {
	log := follower{client: client, url: url, emit: emit}
	pause := async.Jitter(0.2, async.Backoff(10*time.Millisecond, time.Second))
	for fruitless := 1; ; fruitless++ {
		before := log.offset
		over, err := log.connect(ctx)
		if log.offset > before {
			fruitless = 0
		}
		if over || fruitless == 10 {
			return err
		}
		if err := async.Sleep(ctx, pause(fruitless)); err != nil {
			return err
		}
	}
}

// A follower knows how far it has come.
type follower struct {
	client *http.Client
	url    string
	emit   func(line string) error
	offset int64           // bytes received
	line   strings.Builder // received, but not emitted yet
}

// connect reads what follows the offset. Unless it is over, to connect again
// may bring more.
func (f *follower) connect(ctx context.Context) (over bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s?offset=%d", f.url, f.offset), nil)
	if err != nil {
		return true, err
	}
	response, err := f.client.Do(request)
	if err != nil {
		return false, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return response.StatusCode < 500, fmt.Errorf("log: %s", response.Status)
	}
	return f.read(bufio.NewReader(response.Body))
}

// read takes every byte that r has, also those before an error.
func (f *follower) read(r *bufio.Reader) (over bool, err error) {
	for {
		part, err := r.ReadString('\n')
		f.offset += int64(len(part))
		f.line.WriteString(part)
		if err != nil && err != io.EOF {
			return false, err
		}
		if f.line.Len() > 0 {
			if err := f.emit(f.line.String()); err != nil {
				return true, err
			}
			f.line.Reset()
		}
		if err == io.EOF {
			return true, nil
		}
	}
}
