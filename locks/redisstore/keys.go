package redisstore

import (
	"strings"

	"github.com/ambit-go/ambit/locks"
)

// keys returns the keys of a lock, in the order that common.lua has.
func (s *Store) keys(name locks.Name) []string {
	tenant := s.tenant(name.Tenant)
	lock := tenant + ":" + escape(name.Key) + ":"
	return []string{lock + "r", lock + "h", lock + "q", lock + "x", lock + "e", tenant + "#i", tenant + "#f"}
}

// tenant returns what all keys of a tenant begin with. What is in braces decides the
// slot of a cluster, and is never empty.
func (s *Store) tenant(tenant string) string { return s.prefix + ":{t:" + escape(tenant) + "}" }

// channels returns the prefix of the channels of this store: each process listens on
// the one that ends in its ID.
func (s *Store) channels() string { return s.prefix + ":wake:" }

// escape writes all but letters, digits and a few others as %XX, so no two tenants or
// keys are written alike, and none holds a colon or a brace.
func escape(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._/", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(hex[c>>4])
		b.WriteByte(hex[c&15])
	}
	return b.String()
}
