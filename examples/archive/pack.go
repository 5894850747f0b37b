package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// pack writes an archive of the files, and of all that is in them if they are directories. It looks at ctx
// between two pieces: a large file does not hold up a cancel.
func pack(ctx context.Context, w io.Writer, files []string) error {
	zipped := gzip.NewWriter(w)
	archive := tar.NewWriter(zipped)
	for _, file := range files {
		err := filepath.WalkDir(file, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return add(ctx, archive, path)
		})
		if err != nil {
			return fmt.Errorf("packing: %w", err)
		}
	}
	return errors.Join(archive.Close(), zipped.Close())
}

// add adds one file, directory or link. A socket, as an agent may have left, is left out: no archive can hold one.
func add(ctx context.Context, archive *tar.Writer, path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSocket != 0 {
		say("%s is a socket, and left out", path)
		return nil
	}
	link := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if link, err = os.Readlink(path); err != nil {
			return err
		}
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	header.Name = filepath.ToSlash(filepath.Clean(path))
	if info.IsDir() {
		header.Name += "/"
	}
	if err := archive.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := io.Copy(archive, io.LimitReader(canceled{f, ctx}, header.Size)) // what is appended meanwhile is not of this archive
	if err == nil && n < header.Size {
		err = fmt.Errorf("%s: it was truncated while it was read", path)
	}
	return err
}

// A canceled reader ends with the cause of its ctx.
type canceled struct {
	io.Reader
	ctx context.Context
}

func (c canceled) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.Reader.Read(p)
}
