//go:build !linux

package sqlitestore

import "time"

func bootClock() (boot string, since func() time.Duration) { return "", nil }
