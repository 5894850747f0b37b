// Package boltfile is what reading a file of bbolt needs around bbolt: to look at the file
// before bbolt maps it, and to live through what bbolt panics with.
package boltfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Check reads a whole file with pages of this size, and says what is wrong with its
// structure. bbolt maps the file and follows what it finds: a page that is missing, or not
// a page, would end the process.
func Check(file io.ReaderAt, pageSize int) error {
	return (&checker{file: file, size: int64(pageSize)}).run()
}

// A checker reads the pages of a bbolt file.
type checker struct {
	file io.ReaderAt
	size int64 // of a page
	high uint64
	seen []bool // by page
}

// The layout of a page. Numbers are as the processor has them.
const (
	headerSize  = 16 // id, flags, count, overflow
	elementSize = 16 // of a branch: pos, key size, page. For a leaf: flags, pos, key size, value size
	bucketSize  = 16 // page of the root, sequence; a small bucket is a page that follows
	branchPage  = 1
	leafPage    = 2
	bucketValue = 1 // flag of an element of a leaf
)

var (
	u16 = binary.NativeEndian.Uint16
	u32 = binary.NativeEndian.Uint32
	u64 = binary.NativeEndian.Uint64
)

func (c *checker) run() error {
	root, txid := uint64(0), uint64(0)
	for i := range int64(2) { // the meta pages; bbolt has found that one at least is right
		m := make([]byte, 80)
		if _, err := c.file.ReadAt(m, i*c.size); err != nil {
			return err
		}
		const magic = 0xED0CDAED
		m = m[headerSize:]
		if u32(m) == magic && checksum(m[:56]) == u64(m[56:]) && u64(m[48:]) >= txid {
			root, c.high, txid = u64(m[16:]), u64(m[40:]), u64(m[48:])
		}
	}
	end, err := c.file.ReadAt(make([]byte, 1), int64(c.high)*c.size-1)
	if end == 0 {
		return fmt.Errorf("its end is missing, it had %d bytes: %w", int64(c.high)*c.size, err)
	}
	c.seen = make([]bool, c.high)
	return c.tree(root, nil, nil)
}

// checksum is FNV-1a, as bbolt has it for meta pages.
func checksum(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, x := range b {
		h = (h ^ uint64(x)) * 1099511628211
	}
	return h
}

// tree checks a page and all below it. Its keys are not less than low, and less than
// high, if that is not nil.
func (c *checker) tree(id uint64, low, high []byte) error {
	if id < 2 || id >= c.high || c.seen[id] {
		return fmt.Errorf("page %d is referred to, and cannot be there", id)
	}
	c.seen[id] = true
	head := make([]byte, headerSize)
	if _, err := c.file.ReadAt(head, int64(id)*c.size); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	over := uint64(u32(head[12:]))
	if u64(head) != id || over >= c.high-id {
		return fmt.Errorf("where page %d should be is something else", id)
	}
	for i := range over {
		if c.seen[id+1+i] {
			return fmt.Errorf("page %d is referred to twice", id+1+i)
		}
		c.seen[id+1+i] = true
	}
	b := make([]byte, int64(over+1)*c.size)
	if _, err := c.file.ReadAt(b, int64(id)*c.size); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	if err := c.page(b, low, high); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

// page checks one page, with its header.
func (c *checker) page(b, low, high []byte) error {
	flags, count := u16(b[8:]), int(u16(b[10:]))
	if len(b) < headerSize+count*elementSize || flags != leafPage && (flags != branchPage || count == 0) {
		return errors.New("it is no page")
	}
	keys, pages := make([][]byte, count), make([]uint64, count)
	for i := range count {
		at := headerSize + i*elementSize
		e := b[at:]
		if flags == branchPage {
			key, ok := slice(b, at, u32(e), u32(e[4:]), 0)
			if !ok {
				return errors.New("a key is not in it")
			}
			keys[i], pages[i] = key, u64(e[8:])
		} else {
			key, ok := slice(b, at, u32(e[4:]), u32(e[8:]), 0)
			value, whole := slice(b, at, u32(e[4:]), u32(e[12:]), u32(e[8:]))
			if !ok || !whole {
				return errors.New("a key or a value is not in it")
			}
			keys[i] = key
			if u32(e)&bucketValue != 0 {
				if err := c.bucket(value); err != nil {
					return err
				}
			}
		}
		if bytes.Compare(keys[i], low) < 0 || high != nil && bytes.Compare(keys[i], high) >= 0 || i > 0 && bytes.Compare(keys[i-1], keys[i]) >= 0 {
			return errors.New("its keys are in disorder")
		}
	}
	for i := range pages {
		if flags != branchPage {
			break
		}
		next := high
		if i+1 < count {
			next = keys[i+1]
		}
		if err := c.tree(pages[i], keys[i], next); err != nil {
			return err
		}
	}
	return nil
}

// slice returns n bytes at pos + skip behind the element at at.
func slice(b []byte, at int, pos, n, skip uint32) ([]byte, bool) {
	from := uint64(at) + uint64(pos) + uint64(skip)
	to := from + uint64(n)
	if to > uint64(len(b)) {
		return nil, false
	}
	return b[from:to], true
}

// bucket checks what is in a bucket.
func (c *checker) bucket(value []byte) error {
	if len(value) < bucketSize {
		return errors.New("a bucket is not in it")
	}
	if root := u64(value); root != 0 {
		return c.tree(root, nil, nil)
	}
	if value = value[bucketSize:]; len(value) < headerSize {
		return errors.New("a small bucket is not in it")
	}
	return c.page(value, nil, nil)
}
