package relational

import (
	"hash/fnv"
	"slices"

	"github.com/ambit-go/ambit/locks/internal/book"
)

// A Row has in Wakes for whom it is the turn, and how often that was news: so each process
// sees by one number whether it is meant. Without, each step that hands a lock on would have
// every process that waits read all that wait.
//
// The lower bits are the marks of the processes that have a request which could be granted
// after the last step, two bits for each: two processes may have the same, which costs a
// question in vain. The bits above are a count.
const markBits = 40

// Mark is what Wakes has of a process.
func Mark(client string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(client)) // never fails
	sum := h.Sum64()
	first := sum % markBits
	second := (first + 1 + sum/markBits%(markBits-1)) % markBits
	return 1<<first | 1<<second
}

// Marked says whether wakes may mean the process that has the mark.
func Marked(wakes, mark int64) bool { return wakes&mark == mark }

// marks is the lower part of Wakes.
func marks(clients []string) (all int64) {
	for _, c := range clients {
		all |= Mark(c)
	}
	return all
}

// told returns the processes that the last step has told already that it is their turn:
// what has become grantable by the mere passing of time nobody was told of.
func (r *Row) told(res *book.Resource) []string {
	if r.Wakes&(1<<markBits-1) == 0 {
		return nil
	}
	return slices.DeleteFunc(res.Wake(0), func(c string) bool { return !Marked(r.Wakes, Mark(c)) })
}

// wakes returns what Wakes is after a step, and the processes that are to be told. clients
// are those that have a request which could be granted now.
func (l *Loaded) wakes(clients []string) (wakes int64, news []string) {
	if l.row != nil {
		wakes = l.row.Wakes
	}
	for _, c := range clients {
		if !slices.Contains(l.told, c) {
			news = append(news, c)
		}
	}
	count := wakes >> markBits
	if len(news) > 0 {
		count = (count + 1) & (1<<(62-markBits) - 1)
	}
	return count<<markBits | marks(clients), news
}
