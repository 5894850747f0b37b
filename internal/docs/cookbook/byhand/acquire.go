package byhand

import "context"

func Acquire[J any](
	ctx context.Context, stop <-chan struct{}, acquire func(ctx context.Context) (J, error),
	run func(ctx context.Context, job J) error,
) error {
	acquiring, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		<-stop
		cancel()
	}()
	job, err := acquire(acquiring)
	if err != nil {
		return err
	}
	return run(ctx, job)
}
