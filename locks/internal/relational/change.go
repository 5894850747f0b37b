package relational

import (
	"reflect"
	"slices"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
)

// A Loaded resource is one whose row is locked by a transaction.
type Loaded struct {
	*book.Resource // what the step works on
	name           locks.Name
	row            *Row     // as it is in the database, nil if it is not there
	told           []string // processes that know already that it is their turn
	entries        map[string]book.Entry
}

// Load puts together what was read, for a step. row is nil if there is none: no row was
// locked then, so the entries are those of a record that was made between the two statements,
// and are not touched. floor is Statements.Floor, for one that does not exist and may be made.
func Load(name locks.Name, row *Row, entries []book.Entry, floor int64) *Loaded {
	if row == nil {
		entries = nil
	}
	l := &Loaded{name: name, row: row, entries: make(map[string]book.Entry, len(entries))}
	for _, e := range entries {
		l.entries[e.ID] = e
	}
	if row == nil || !row.Exists {
		l.Resource = &book.Resource{Name: name, Fence: floor}
	} else {
		l.Resource = row.resource(entries)
		l.told = row.told(l.Resource)
	}
	return l
}

// A Change is what a step has changed, as rows.
type Change struct {
	Insert []any // the values of all columns of lk_resource
	Update []any // the same, with the key at the end
	Delete bool  // the row of lk_resource
	Bury   int64 // the fence of what is deleted, 0 if it has none
	Put    []Entry
	Drop   []string // the IDs of entries
	// Touch are requests that wait of which only the time is another when they are
	// forgotten: Until. There may be thousands, and each second.
	Touch []string
	Until int64
	// Wake are the processes that are to be told that a request of theirs could be granted
	// now.
	Wake []string
}

// Change compares what a step has left with what was read.
func (l *Loaded) Change(now int64) Change {
	if !l.Exists {
		c := Change{Delete: l.row != nil}
		if c.Delete && l.row.Exists {
			c.Bury = l.Fence
		}
		for id := range l.entries {
			c.Drop = append(c.Drop, id)
		}
		return c
	}
	wakes, news := l.wakes(l.Wake(now))
	c := Change{Wake: news}
	r, entries := row(l.Resource, wakes)
	switch values := args(r.fields()); {
	case l.row == nil:
		c.Insert = values
	case !reflect.DeepEqual(values, args(l.row.fields())):
		c.Update = append(values[2:len(values):len(values)], values[:2]...)
	}
	left := make(map[string]bool, len(entries))
	for _, e := range entries {
		left[e.ID] = true
		was, there := l.entries[e.ID]
		switch {
		case there && was == e:
		case there && c.touches(was, e):
			c.Touch, c.Until = append(c.Touch, e.ID), e.Expires
		default:
			c.Put = append(c.Put, Entry{l.name, e})
		}
	}
	for id := range l.entries {
		if !left[id] {
			c.Drop = append(c.Drop, id)
		}
	}
	return c
}

// touches says whether an entry differs from what it was in its time alone, and that is the
// same as that of the others.
func (c *Change) touches(was, e book.Entry) bool {
	was.Expires = e.Expires
	return was == e && !e.Held && (len(c.Touch) == 0 || c.Until == e.Expires)
}

// Touches calls f with the values of each statement Touch that there is to do.
func (c *Change) Touches(name locks.Name, f func(args []any)) {
	for ids := range slices.Chunk(c.Touch, touched) {
		args := append([]any{c.Until}, Key(name)...)
		for _, id := range ids {
			args = append(args, Bytes(id))
		}
		for len(args) < 3+touched { // one text for all
			args = append(args, args[len(args)-1])
		}
		f(args)
	}
}

// ReadPage reads the resources of a page by two queries, number 0 for their rows and
// number 1 for their entries. query calls row for each row that there is.
func ReadPage(tenant, after string, most int, query func(number int, args []any, row func(scan func(dest ...any) error) error) error) ([]*book.Resource, error) {
	var rows []*Row
	err := query(0, []any{Bytes(tenant), Bytes(after), int64(most)}, func(scan func(...any) error) error {
		rows = append(rows, new(Row))
		return rows[len(rows)-1].Scan(scan)
	})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	entries := map[string][]book.Entry{}
	args := []any{Bytes(tenant), Bytes(rows[0].Key), Bytes(rows[len(rows)-1].Key)}
	err = query(1, args, func(scan func(...any) error) error {
		var e Entry
		err := e.Scan(scan)
		entries[e.Key] = append(entries[e.Key], e.Entry)
		return err
	})
	page := make([]*book.Resource, len(rows))
	for i, row := range rows {
		page[i] = row.resource(entries[row.Key])
	}
	return page, err
}

// Placeholder returns the values of a row that is made only to be locked.
func Placeholder(name locks.Name) []any {
	r := Row{}
	r.Name = name
	return args(r.fields())
}
