package tree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
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
	data = p.Open(name, data)
	return p.Parse(data)
}

// Open makes a file the one that is read: its places are those of messages. It
// returns the text without a mark of its encoding.
func (p *Reader) Open(name string, data []byte) []byte {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	p.files = append(p.files, source{name, data})
	p.reading = len(p.files) - 1
	return data
}

// Parse makes a tree of the file that is read, or of its first lines; nil if that is not
// YAML.
func (p *Reader) Parse(data []byte) *Node {
	document := p.load(data)
	if document == nil {
		return nil
	}
	return p.tree(document)
}

// mark returns a place in the file that is read.
func (p *Reader) mark(line, column int) Mark { return Mark{line, column, p.reading} }

// MarkOf returns the place of a byte in the file that is read.
func (p *Reader) MarkOf(data []byte, offset int) Mark {
	before := data[:offset]
	line := bytes.Count(before, []byte("\n"))
	return p.mark(line+1, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])+1)
}
