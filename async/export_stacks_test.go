package async

import "github.com/ambit-go/ambit/async/internal/look"

// Looks returns how often the stacks of all goroutines have been looked at.
func Looks() int64 { return look.Count() }
