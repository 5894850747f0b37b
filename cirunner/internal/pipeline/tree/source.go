package tree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// ReadFile reads a file, no more of it than a pipeline may have.
func ReadFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, cannotRead(name, err)
	}
	if info.Mode()&os.ModeNamedPipe != 0 && !strings.HasPrefix(name, "/dev/") {
		return nil, fmt.Errorf("%s: it is a named pipe, for whose writer one would wait: name a file, or /dev/stdin", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, cannotRead(name, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, cannotRead(name, err)
	}
	return data, nil
}

// cannotRead leaves out how the operating system was asked.
func cannotRead(name string, err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("%s: cannot read it: %w", name, err)
}

// Read makes a tree of a file; nil if it is not YAML.
func (p *Reader) Read(name string, data []byte) *Node {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	p.files = append(p.files, source{name, data})
	p.reading = len(p.files) - 1
	document := p.load(data)
	if document == nil {
		return nil
	}
	return p.tree(document)
}

// mark returns a place in the file that is read.
func (p *Reader) mark(line, column int) Mark { return Mark{line, column, p.reading} }
