// Archive packs files and uploads them while it packs: nothing is written to a disk, and memory does not grow
// with what is packed. An upload that fails is made again from the start; one that is too large, or that the server
// refuses, is not. A server never takes a piece for the whole.
//
//	go run ./examples/archive -url http://127.0.0.1:8080/artifacts/1.tar.gz out report.xml
//
// upload.go is the upload and its attempts, pack.go makes the archive.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/service"
)

const about = `usage: archive -url address [flags] file...

Archive packs files and directories as tar.gz, and uploads that by PUT while it is packed.

Exit status: 0 the server has it, 1 it has not, 2 wrong arguments, 124 not within -limit, 130 and 143 stopped by a signal.

`

func main() {
	u := &uploader{client: &http.Client{CheckRedirect: stay}, say: say}
	flag.StringVar(&u.url, "url", "", "upload to this `address`")
	flag.Int64Var(&u.most, "most", 1<<30, "upload no more than so many `bytes`")
	flag.IntVar(&u.attempts, "attempts", 5, "give up after `n` attempts")
	flag.DurationVar(&u.pause, "pause", time.Second, "the first `time` between attempts; it doubles, up to 30s")
	flag.DurationVar(&u.limit, "limit", 0, "give up after this `time`; 0 for never")
	flag.Usage = func() {
		fmt.Fprint(os.Stderr, about)
		flag.PrintDefaults()
	}
	flag.Parse()
	if u.url == "" || flag.NArg() == 0 || u.attempts < 1 {
		say("name files, and an address by -url")
		os.Exit(2)
	}
	service.Main(func(ctx context.Context) error {
		size, err := u.upload(ctx, flag.Args())
		switch {
		case err == nil:
			say("%s has all %d bytes", u.url, size)
		case errors.As(err, new(*async.TimeoutError)):
			err = service.WithStatus(err, 124)
		}
		return err
	})
}

// say tells the user something.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "archive: "+format+"\n", args...) }

// errTooLarge says that there is no use in another attempt.
var errTooLarge = errors.New("the archive is too large")
