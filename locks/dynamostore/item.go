package dynamostore

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
)

// format is that of the items. One of a newer format is refused.
const format = 1

// An item of the table is one lock, with all that hold it or wait for it:
//
//	pk      B  the length of the tenant, a colon, the tenant, a colon, the key
//	tenant  B
//	key     B
//	rev     N  changes with every write, which is on the condition that it has not
//	format  N
//	book    B  the lock as JSON, which is compressed if it is long
//	gone    N  there is no record in it: seconds since 1970 when it may be deleted
type item struct {
	rev   int64 // 0: there is none
	r     *book.Resource
	ready bool // r begins above the floor: a record may be made
}

// copy returns the item with a lock that may be changed.
func (it item) copy() item {
	r := *it.r
	r.Entries = slices.Clone(r.Entries)
	return item{rev: it.rev, r: &r}
}

// same says whether a step has changed nothing, and need not be written: a write costs more than a look.
func (it item) same(r *book.Resource) bool {
	was := *it.r
	was.Slack = r.Slack // it is not stored
	return reflect.DeepEqual(&was, r)
}

func key(name locks.Name) types.AttributeValue {
	return &types.AttributeValueMemberB{Value: fmt.Appendf(nil, "%d:%s:%s", len(name.Tenant), name.Tenant, name.Key)}
}

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func toNumber(v types.AttributeValue) int64 {
	if n, ok := v.(*types.AttributeValueMemberN); ok {
		i, _ := strconv.ParseInt(n.Value, 10, 64)
		return i
	}
	return 0
}

func toBytes(v types.AttributeValue) []byte {
	if b, ok := v.(*types.AttributeValueMemberB); ok {
		return b.Value
	}
	return nil
}

// stored is a Resource as JSON. Its name is in the item, and data is any bytes, which
// JSON has no strings for.
type stored struct {
	*book.Resource
	Data    []byte
	HasData bool
}

// long is from how many bytes on a lock is compressed: an item has 400 KB at most, and
// thousands of those who wait would not fit.
const long = 64 << 10

func encode(r *book.Resource) ([]byte, error) {
	s := stored{Resource: r}
	if r.Data != nil {
		s.Data, s.HasData = []byte(*r.Data), true
	}
	plain, err := json.Marshal(s)
	if err != nil || len(plain) < long {
		return plain, err
	}
	var b bytes.Buffer
	b.WriteByte(0) // no JSON begins so
	w, err := flate.NewWriter(&b, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err = w.Write(plain); err == nil {
		err = w.Close()
	}
	return b.Bytes(), err
}

// decode reads an item. Without attributes it is one that is not there.
func decode(name locks.Name, attrs map[string]types.AttributeValue) (item, error) {
	it := item{r: &book.Resource{}}
	if len(attrs) > 0 {
		if f := toNumber(attrs["format"]); f > format {
			return it, &locks.ValidationError{What: "store", Why: fmt.Sprintf("the table has items of format %d, newer than this program knows (%d): use a newer one", f, format)}
		}
		b := toBytes(attrs["book"])
		if len(b) > 0 && b[0] == 0 {
			plain, err := io.ReadAll(flate.NewReader(bytes.NewReader(b[1:])))
			if err != nil {
				return it, fmt.Errorf("locks: the item of lock %q is damaged: %w", name.Key, err)
			}
			b = plain
		}
		s := stored{Resource: it.r}
		if err := json.Unmarshal(b, &s); err != nil {
			return it, fmt.Errorf("locks: the item of lock %q is damaged: %w", name.Key, err)
		}
		if s.HasData {
			data := string(s.Data)
			it.r.Data = &data
		}
		it.rev = toNumber(attrs["rev"])
	}
	it.r.Name = name
	return it, nil
}
