package async

// Looks returns how often the stacks of all goroutines have been looked at.
func Looks() int64 { return looks.begun.Load() }
