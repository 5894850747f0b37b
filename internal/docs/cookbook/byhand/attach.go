package byhand

import (
	"context"
	"io"
	"net"
)

func Attach(ctx context.Context, conn net.Conn, stdin io.Reader, stdout io.Writer) error {
	defer func() { _ = conn.Close() }()
	in, out := make(chan error, 1), make(chan error, 1)
	go func() {
		if _, err := io.Copy(conn, stdin); err != nil {
			in <- err
		}
	}()
	go func() {
		_, err := io.Copy(stdout, conn)
		out <- err
	}()
	select {
	case err := <-in:
		return err
	case err := <-out:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
