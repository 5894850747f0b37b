package boltfile

import "os"

// A Checked remembers in which state a file was looked through last. The zero Checked knows of
// none.
//
// Those who want to open a file look through it under a lock that they share, and none of them
// gets the file alone meanwhile. So each looks once at a file that nobody writes to:
// many that begin together would else keep each other from it for ever.
type Checked struct{ was os.FileInfo }

// Is reports whether the file at path is as it was when it was looked through.
func (c *Checked) Is(path string) bool {
	now, err := os.Stat(path)
	return err == nil && c.was != nil && os.SameFile(now, c.was) && now.Size() == c.was.Size() && now.ModTime().Equal(c.was.ModTime())
}

// Note notes that a file was looked through, while nobody could write to it, and is sound.
func (c *Checked) Note(f *os.File) error {
	now, err := f.Stat()
	if err == nil {
		c.was = now
	}
	return err
}
