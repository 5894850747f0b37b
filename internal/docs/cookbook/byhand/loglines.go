package byhand

import (
	"context"
	"log"
	"time"
)

func SendLog(ctx context.Context, lines <-chan string, send func(ctx context.Context, lines []string) error) {
	var batch []string
	size := 0
	flush := func() {
		if err := send(ctx, batch); err != nil {
			log.Print(err)
		}
		batch, size = nil, 0
	}
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				flush()
				return
			}
			batch = append(batch, line)
			if size += len(line); size >= 1<<20 {
				flush()
			}
		case <-time.After(time.Second):
			if len(batch) > 0 {
				flush()
			}
		case <-ctx.Done():
			flush()
			return
		}
	}
}
