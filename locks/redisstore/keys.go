package redisstore

import (
	"strconv"
	"strings"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
)

// parts is into how many parts the locks of a tenant are divided. The keys of a part are in one
// slot of a cluster, so a tenant is not one node's.
const parts = 64

// keys returns the keys of a lock, in the order that common.lua has.
func (s *Store) keys(name locks.Name) []string { return partKeys(s.part(name), name.Key) }

func partKeys(part, key string) []string {
	return append(appendKeys(make([]string, 0, 8), part, key), part+"#i", part+"#f", part+"#p")
}

// appendKeys appends the keys that are of one lock alone. part is what they begin with.
func appendKeys(keys []string, part, key string) []string {
	all := part + ":" + escape(key) + ":"
	return append(keys, all+"r", all+"h", all+"q", all+"x", all+"e")
}

// part returns what all keys of the part begin with that a lock is in.
func (s *Store) part(name locks.Name) string { return s.partOf(name.Tenant, book.Bucket(name)%parts) }

// partOf returns what all keys of a part of a tenant begin with. The text in braces decides the slot of a
// cluster.
func (s *Store) partOf(tenant string, n int64) string {
	return s.prefix + ":{" + strconv.FormatInt(n, 10) + ":" + escape(tenant) + "}"
}

// channels returns the prefix of the channels of this store: each process listens on
// the one that ends in its ID.
func (s *Store) channels() string { return s.prefix + ":wake:" }

// escape writes all but letters, digits and a few others as %XX, so no two tenants or
// keys are written alike, and none holds a colon or a brace.
func escape(s string) string {
	const hex = "0123456789ABCDEF"
	first := 0
	for first < len(s) && stays(s[first]) {
		first++
	}
	if first == len(s) {
		return s
	}
	var b strings.Builder
	b.WriteString(s[:first])
	for i := first; i < len(s); i++ {
		c := s[i]
		if stays(c) {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(hex[c>>4])
		b.WriteByte(hex[c&15])
	}
	return b.String()
}

func stays(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' || c == '/'
}
