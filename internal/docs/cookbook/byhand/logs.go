package byhand

import (
	"bufio"
	"context"
	"io"
	"time"
)

func FollowLog(
	ctx context.Context,
	open func(ctx context.Context, since time.Time) (io.ReadCloser, error),
	lines chan<- string,
) {
	var since time.Time
	for ctx.Err() == nil {
		body, err := open(ctx, since)
		if err != nil {
			time.Sleep(time.Second)
			continue
		}
		for r := bufio.NewReader(body); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				break
			}
			lines <- line
			since = time.Now()
		}
		_ = body.Close()
	}
}
