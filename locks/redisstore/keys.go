package redisstore

import (
	"strings"

	"github.com/ambit-go/ambit/locks"
)

// keys returns the keys of a lock, in the order that common.lua has.
func (s *Store) keys(name locks.Name) []string {
	tenant := s.tenant(name.Tenant)
	return append(appendKeys(make([]string, 0, 8), tenant, name.Key), tenant+"#i", tenant+"#f", tenant+"#p")
}

// appendKeys appends the keys that are of one lock alone. tenant is what they begin with.
func appendKeys(keys []string, tenant, key string) []string {
	all := tenant + ":" + escape(key) + ":"
	return append(keys, all+"r", all+"h", all+"q", all+"x", all+"e")
}

// tenant returns what all keys of a tenant begin with. The part in braces decides the
// slot of a cluster, and is never empty.
func (s *Store) tenant(tenant string) string { return s.prefix + ":{t:" + escape(tenant) + "}" }

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
