package redisstore

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
)

// The client library writes to stderr that it cannot reach a server, though each call returns that.
// A logger that a program gives to redis.SetLogger takes the place of ours.
func init() { redis.SetLogger(quietLogger{log.New(os.Stderr, "redis: ", log.LstdFlags)}) }

// A quietLogger writes what the client library would write, but for failed dials.
type quietLogger struct{ log *log.Logger }

func (q quietLogger) Printf(_ context.Context, format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !strings.Contains(text, "failed to dial") {
		q.log.Print(text)
	}
}
