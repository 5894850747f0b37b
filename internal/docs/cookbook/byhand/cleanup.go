package byhand

import (
	"context"
	"log"
	"sync"
	"time"
)

func Cleanup(budget time.Duration, phases ...[]func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), budget)
	defer cancel()
	for _, phase := range phases {
		var wg sync.WaitGroup
		for _, remove := range phase {
			wg.Go(func() {
				if err := remove(ctx); err != nil {
					log.Print(err)
				}
			})
		}
		wg.Wait()
	}
}
