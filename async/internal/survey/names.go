package survey

import (
	"path"
	"runtime"
	"strconv"
	"strings"

	"github.com/ambit-go/ambit/async/internal/tree"
	"github.com/ambit-go/ambit/async/picture"
)

// names are those of all tasks that were seen, each once: a million tasks have few. A function is
// looked up once.
type names struct {
	all   []name
	given map[naming]int32
	last  naming // most often the next is called as the one before
	at    int32  // its index
}

// A naming is what tells one name from another.
type naming struct {
	text string
	pc   uintptr
}

type name struct {
	text, place, alike string
}

// of returns the index of the name of t.
func (n *names) of(t *tree.Task) int32 {
	text, pc := tree.Called(t)
	key := naming{text, pc}
	if key == n.last && len(n.all) > 0 {
		return n.at
	}
	n.last, n.at = key, n.index(key)
	return n.at
}

// index returns the index of the name, which is made if it is new.
func (n *names) index(key naming) int32 {
	if i, ok := n.given[key]; ok {
		return i
	}
	if n.given == nil {
		n.given = make(map[naming]int32)
	}
	made := name{text: key.text, place: placeOf(key.pc)}
	if key.text == "" {
		made.text = tree.FuncName(key.pc)
	}
	made.alike = picture.Alike(made.text)
	n.all = append(n.all, made)
	i := int32(len(n.all) - 1)
	if len(n.given) < mostNames {
		n.given[key] = i
	}
	return i
}

// mostNames bounds the memory of names that are all different; more of them are kept each for itself.
const mostNames = 1 << 16

// placeOf returns where the function at pc begins: its file with one folder, which tells nothing of
// the machine it was compiled on. It is "" for a wrapper that the compiler has made, and for what
// package async starts for itself.
func placeOf(pc uintptr) string {
	f := runtime.FuncForPC(pc)
	if f == nil || strings.HasPrefix(f.Name(), "github.com/ambit-go/ambit/async.") {
		return ""
	}
	file, line := f.FileLine(pc)
	if line <= 1 || strings.HasPrefix(file, "<") {
		return ""
	}
	return shortPlace(file + ":" + strconv.Itoa(line))
}

// shortPlace returns the last two elements of a path.
func shortPlace(file string) string {
	dir, base := path.Split(file)
	return path.Join(path.Base(dir), base)
}
