package byhand

import (
	"context"
	"io"
	"log"
)

func RunStep(
	ctx context.Context, run func(ctx context.Context, out io.Writer) error,
	upload func(ctx context.Context, in io.Reader) error,
) error {
	in, out := io.Pipe()
	uploaded := make(chan struct{})
	go func() {
		defer close(uploaded)
		if err := upload(ctx, in); err != nil {
			log.Print(err)
		}
	}()
	err := run(ctx, out)
	_ = out.Close()
	select {
	case <-uploaded:
	case <-ctx.Done():
	}
	return err
}
