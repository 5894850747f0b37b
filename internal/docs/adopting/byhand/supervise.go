package byhand

import (
	"context"
	"log"
	"time"
)

func Supervise(ctx context.Context, work func(ctx context.Context) error) {
	for ctx.Err() == nil {
		func() {
			defer func() {
				if v := recover(); v != nil {
					log.Print(v)
				}
			}()
			if err := work(ctx); err != nil {
				log.Print(err)
			}
		}()
		time.Sleep(time.Second)
	}
}
