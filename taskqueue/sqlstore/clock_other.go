//go:build !linux

package sqlstore

// machineTime returns what tells the time of the machine. Without a name for its starts there
// is only the wall clock: leases follow it when it is put forward or back.
func machineTime() func() moment { return programTime }
