// Thumbnails watches a folder of pictures and keeps a thumbnail of each of them
// up to date. It shows package jobqueue: a picture is queued once however often
// it changes, several consumers take from the queue, what fails goes back with
// a delay and is given up after five attempts, and who stops the program is
// told everything that was not finished.
//
//	go run ./examples/thumbnails                  # a demo in a temporary folder
//	go run ./examples/thumbnails ~/Pictures       # until Ctrl-C
//	go run ./examples/thumbnails -once ~/Pictures # once over the folder
//
// The files: studio.go is the queue and its consumers, watch.go what is put into
// it, picture.go a picture and its smaller copy, gallery.go the folder of
// thumbnails, book.go, gaps.go and report.go what is told, demo.go the demo,
// flags.go the arguments.
//
// It exits with 0 if every picture has its thumbnail, 1 if it could not work, 2
// when the arguments are wrong, 3 if some pictures were given up or some folders
// could not be looked into (-once), and 130 when interrupted. (go run hides the
// status: it prints it and exits with 1.)
package main

import (
	"context"

	"github.com/ambit-go/ambit/examples/internal/cli"
)

// statusGivenUp is for -once: there are, or may be, pictures without a thumbnail.
const statusGivenUp = 3

func main() { newProgram().Main() }

func newProgram() *cli.Program {
	cfg := new(config)
	return &cli.Program{
		Name:     "thumbnails",
		Synopsis: "[flags] [folder]",
		About: `Thumbnails watches a folder and what is in it, and keeps a thumbnail of each
picture up to date: jpeg, png, gif, webp, bmp and tiff. Without a folder it
shows what it does in a temporary one, and ends by itself.`,
		Exit: `0 every picture has its thumbnail, 1 could not work, 2 wrong arguments,
3 some pictures were given up, or folders not looked into (-once), 130 interrupted. What happens and the
statistics are on stdout, progress and trouble on stderr`,
		Flags: cfg.flags,
		Run: func(ctx context.Context, args []string, std cli.Streams) error {
			if err := cfg.parse(args); err != nil {
				return err
			}
			if cfg.folder == "" {
				return demo(ctx, *cfg, std)
			}
			return work(ctx, *cfg, std)
		},
	}
}

// work keeps the thumbnails of a folder up to date.
func work(ctx context.Context, cfg config, std cli.Streams) error {
	s, err := open(cfg, std)
	if err != nil {
		return err
	}
	defer s.close()
	s.book.say("%s: thumbnails go to %s\n", cfg.folder, cfg.out)
	feed := s.watch
	if cfg.once {
		feed = s.lookOnce
	}
	err = s.run(ctx, feed)
	s.report()
	switch done := s.book.count(); {
	case err != nil:
		return err
	case s.book.err() != nil:
		return s.book.err()
	case done.givenUp+done.unread > 0:
		return &cli.ExitError{Code: statusGivenUp, Err: done.missing()}
	}
	return nil
}
