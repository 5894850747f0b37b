package service

import "time"

// SetLastWords has the third signal wait for d, for programs whose last words are to be read, however busy the machine is.
func SetLastWords(d time.Duration) { lastWords = d }
