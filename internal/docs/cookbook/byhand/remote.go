package byhand

import "context"

type Session interface {
	Run(command string) error
	Signal(signal string) error
	Close() error
}

func RunRemote(ctx context.Context, s Session, command string) error {
	result := make(chan error, 1)
	go func() { result <- s.Run(command) }()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		_ = s.Signal("KILL")
		_ = s.Close()
		return <-result
	}
}
