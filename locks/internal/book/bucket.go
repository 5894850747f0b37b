package book

import (
	"hash/fnv"
	"strconv"

	"github.com/ambit-go/ambit/locks"
)

// Buckets is how many floors of fences a store keeps: a record that goes leaves its last
// fence in that of its bucket, and one that is made begins above it.
const Buckets = 1024

// Bucket returns the bucket of a lock. It is the same for ever: stores have written it.
func Bucket(name locks.Name) int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(strconv.Itoa(len(name.Tenant)) + ":" + name.Tenant + ":" + name.Key)) // never fails
	return int64(h.Sum32() % Buckets)
}
