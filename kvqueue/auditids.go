package kvqueue

import (
	"bytes"
	"context"
)

// readIDs reads the two keys of each id, and compares them.
func (a *auditor) readIDs(ctx context.Context) error {
	s, err := a.read(ctx, Range{Begin: a.lay.marks()})
	if err != nil {
		return err
	}
	if _, _, err := decodeMarks(s.of[0]); err != nil {
		a.fault("%v: ids stand until the next are written, and the retention begins anew", err)
	}
	of := map[string]Key{} // by id
	if err := a.readNames(ctx, of); err != nil {
		return err
	}
	for p, err := range a.span(ctx, "j", 0, s.now(), false) {
		switch {
		case err != nil:
			return err
		case !a.ours(p.Key):
			continue
		}
		k, id := keyOf(p.Key), string(p.Value)
		named, stands := of[id]
		switch {
		case !stands:
			a.fault("the id %q of %v is missing: a repeat adds the item again", id, k)
		case named != k:
			a.fault("the id %q of %v names %v", id, k, named)
		default:
			delete(of, id)
		}
	}
	for id, k := range of {
		a.fault("the id %q names %v, which does not have it: the id never goes", id, k)
	}
	return nil
}

// readNames reads what item each id names.
func (a *auditor) readNames(ctx context.Context, of map[string]Key) error {
	for begin, end := a.lay.all("i"), after(a.lay.all("i")); ; {
		results, _, err := a.kv.Read(ctx, Range{Begin: begin, End: end, Limit: 4 * pageSize})
		if err != nil {
			return err
		}
		for _, p := range results[0].Pairs {
			begin = append(bytes.Clone(p.Key), 0)
			switch id := unescape(a.lay.idIn(p.Key)); {
			case !a.ours(p.Key):
			case len(p.Value) != keySize:
				a.fault("the id %q names %x, which is no key of an item: the next item with it gets it", id, p.Value)
			default:
				of[id] = Key(p.Value)
			}
		}
		if !results[0].More {
			return nil
		}
	}
}
