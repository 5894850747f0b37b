package lockstest

import "time"

// rows are the faults of the matrix. Each begins when all processes have had the lock, and
// ends with everything in order again.
func rows() []row {
	long := func(c *childConfig) { c.Hold = c.Lease * 3 / 2 } // longer than a lease: it is renewed
	permits := func(c *childConfig) { c.Size = 2 }
	// A lease whose release did not reach the store ends an hour late there if its clock was set back by an hour.
	insists := func(c *childConfig) { c.Insists = true }
	return []row{
		{name: "nothing happens", fault: func(r *rowRun) { r.wait(4) }},
		{name: "bodies last longer than a lease", config: long, fault: func(r *rowRun) { r.wait(4) }},
		{name: "a semaphore", config: permits, fault: func(r *rowRun) { r.wait(4) }},
		{name: "the holder is killed", config: long, fault: func(r *rowRun) { r.crash(r.holder()); r.start() }},
		{name: "a holder of a permit is killed", config: permits, fault: func(r *rowRun) { r.crash(r.holder()); r.start() }},
		{name: "those who wait are killed", fault: func(r *rowRun) { r.crash(r.waiter()); r.crash(r.waiter()); r.start(); r.start() }},
		{name: "the holder is stopped for longer than its lease", config: long, fault: func(r *rowRun) { r.pause(r.holder()) }},
		{name: "one who waits is stopped", fault: func(r *rowRun) { r.pause(r.waiter()) }},
		{name: "bodies that do not look at their ctx", config: func(c *childConfig) { c.Deaf = true }, fault: func(r *rowRun) { r.pause(r.holder()) }},
		{name: "bodies that panic", config: func(c *childConfig) { c.Panics = true }, fault: func(r *rowRun) { r.wait(4) }},

		{name: "the network goes silent", network: true, config: long, fault: func(r *rowRun) {
			r.holder()
			r.proxy.Silence()
			r.wait(2)
			r.proxy.Heal()
		}},
		{name: "the network goes silent for the holder alone", network: true, alone: true, config: long, fault: silentForOne},
		{name: "connections are reset", network: true, fault: func(r *rowRun) {
			for range 10 {
				r.proxy.Reset()
				time.Sleep(r.config.Lease / 10)
			}
		}},
		{name: "answers are lost after the step was done", network: true, fault: func(r *rowRun) {
			for range 15 {
				r.proxy.Lose(1)
				time.Sleep(r.config.Lease / 15)
			}
			r.proxy.Heal()
		}},
		{name: "the network is slow", network: true, fault: func(r *rowRun) {
			r.proxy.Delay(r.config.Lease / 20)
			r.wait(2)
			r.proxy.Heal()
		}},
		{name: "the server cannot be reached", network: true, config: long, fault: func(r *rowRun) {
			r.proxy.Refuse()
			r.wait(2)
			r.proxy.Heal()
		}},

		{name: "the server is started again", server: true, fault: func(r *rowRun) { r.server.Restart() }},
		{name: "the clock of the server is set back by an hour", server: true, clock: true, config: insists, fault: func(r *rowRun) {
			r.holder()
			r.server.SetClock(-time.Hour)
			r.wait(2)
		}},
		{name: "the clock of the server is set forward by an hour", server: true, clock: true, early: true, fault: func(r *rowRun) {
			r.holder()
			r.server.SetClock(time.Hour)
			r.wait(2)
		}},
		{name: "the server is killed and comes back", server: true, config: long, fault: func(r *rowRun) {
			r.server.Kill()
			r.wait(1)
			r.server.Start()
		}},
		{name: "the server is stopped for longer than a lease", server: true, config: long, fault: func(r *rowRun) {
			r.server.Pause()
			r.wait(2)
			r.server.Resume()
		}},
	}
}

// wait lets some leases pass.
func (r *rowRun) wait(leases int) { time.Sleep(time.Duration(leases) * r.config.Lease) }

// silentForOne takes the network from the one process that holds the lock, and leaves it
// to two that wait. They have to get the lock, and never before the holder knows that it
// has lost it.
func silentForOne(r *rowRun) {
	r.addTwo()
	for range 4 {
		for r.holder() != r.children[0] {
		}
		silent := Now()
		r.proxy.Silence()
		r.until("the others have the lock", func(events []Event) bool {
			counts := Count(events, Granted, silent+r.config.Lease/2)
			return counts[r.children[1].name] > 0 && counts[r.children[2].name] > 0
		})
		r.proxy.Heal()
	}
}
