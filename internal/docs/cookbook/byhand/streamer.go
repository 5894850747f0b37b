package byhand

import (
	"context"
	"errors"
	"log"
	"sync"
)

type Streamer struct {
	upload func(ctx context.Context, chunk string) error
	chunks chan string
	wg     sync.WaitGroup

	mu      sync.Mutex
	stopped bool
}

func NewStreamer(upload func(ctx context.Context, chunk string) error) *Streamer {
	return &Streamer{upload: upload, chunks: make(chan string, 1024)}
}

func (s *Streamer) Start(ctx context.Context) {
	for range 4 {
		s.wg.Go(func() {
			for {
				select {
				case chunk, ok := <-s.chunks:
					if !ok {
						return
					}
					if err := s.upload(ctx, chunk); err != nil {
						log.Print(err)
					}
				case <-ctx.Done():
					return
				}
			}
		})
	}
}

func (s *Streamer) Write(chunk string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return errors.New("streamer has stopped")
	}
	s.chunks <- chunk
	return nil
}

func (s *Streamer) Stop() {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return
	}
	s.stopped = true
	close(s.chunks)
	s.mu.Unlock()
	s.wg.Wait()
}
