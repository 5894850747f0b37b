//go:build explore

package slots

import "fmt"

// AtRest returns an error unless every slot of l is free and no task is known to
// it: as it has to be when all its tasks have ended.
func (l *Limiter[T, W]) AtRest() error {
	if l.free == l.size && l.returning.empty() && l.starting.empty() &&
		len(l.between) == 0 && l.reachable == 0 && l.outermost.handed.empty() {
		return nil
	}
	return fmt.Errorf("a limit of %d has %d free slots in the end; "+
		"tasks that return: %v, that start: %v; handed to executors: %d",
		l.size, l.free, !l.returning.empty(), !l.starting.empty(), l.reachable)
}
