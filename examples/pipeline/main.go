// Pipeline compresses its standard input, on all processors, to its standard
// output: a stream in three stages that read, compress and write at the same time.
// However long the stream is, and whichever stage is slow, it uses as much memory as
// a fixed number of blocks. From the output gunzip makes the input again.
//
//	seq 1 1000000 | go run ./examples/pipeline | gunzip | tail -1
//
// stream.go has the stages.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"

	"github.com/ambit-go/ambit/service"
)

const about = `usage: pipeline [flags] <input >output

Pipeline compresses its standard input to its standard output, in the format of
gzip, some blocks at a time.

Exit status: 0 done, 1 it could not be read or written, 2 wrong arguments, 130
and 143 stopped by a signal.

`

func main() {
	blocks := flag.Int("blocks", 2*runtime.NumCPU(), "hold `n` blocks at once, read and not yet written")
	size := flag.Int("size", 1<<20, "the `bytes` of a block")
	flag.Usage = func() {
		fmt.Fprint(os.Stderr, about)
		flag.PrintDefaults()
	}
	flag.Parse()
	const most = 1 << 30 // bytes
	if flag.NArg() > 0 || *blocks < 1 || *size < 1 || *blocks > most / *size {
		fmt.Fprintf(os.Stderr, "pipeline: only flags; -blocks and -size are 1 or more, and together no more than %d bytes\n", most)
		os.Exit(2)
	}
	service.Main(func(ctx context.Context) error {
		s := &stream{in: os.Stdin, out: os.Stdout, work: compress, blocks: *blocks, size: *size}
		err := s.run(ctx)
		fmt.Fprintf(os.Stderr, "pipeline: %d bytes read, %d bytes written\n", s.read.Load(), s.written.Load())
		return err
	})
}

// compress makes a file of gzip of a block. Several of those, one after another, are
// such a file, too, so blocks can be compressed independently of each other.
func compress(to *bytes.Buffer, block []byte) error {
	z := gzip.NewWriter(to)
	if _, err := z.Write(block); err != nil {
		return err
	}
	return z.Close()
}
