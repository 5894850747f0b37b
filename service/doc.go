// Package service is for programs that run until they are told to stop: it starts
// services in order, stops them in reverse order, and turns signals and errors into
// an exit status.
//
//	func main() { service.Main(run) }
//
//	func run(ctx context.Context) error {
//		store, err := open()
//		if err != nil {
//			return err
//		}
//		defer store.Close() // when the services have ended
//		l, err := net.Listen("tcp", ":8080") // a port that is taken is the first error
//		if err != nil {
//			return err
//		}
//		return service.Run(ctx, []service.Service{
//			{Name: "worker", Run: work, Options: []async.TaskOption{async.Restart(async.RestartPolicy{Interval: async.Backoff(time.Second, time.Minute)})}},
//			service.HTTP("http", l, &http.Server{Handler: handler(store)}),
//		})
//	}
//
// # Two levels
//
// A context that is cancelled says "stop". It cannot say both "take no more" and
// "drop what you have", so a program that has but one loses requests, or never ends.
// Here a stop has two levels.
//
//   - Drain: take no more, finish what you have. It begins with the first signal, with the
//     end of the ctx of [Run], or with the first end of a service. The ctx of a service
//     lives on.
//   - Cancel: drop what you have. It begins with the second signal, or when [Grace]
//     is over. Every ctx is cancelled.
//
// A third signal ends the process at once, whatever hangs, and names what was still
// draining. With [Debounce] signals that
// come together, because a wrapper sends on what the terminal has sent already, are one.
//
// # What a service is told
//
//	Drain of the Service   called at level 1, when its turn comes
//	Draining(ctx)          closed when level 1 begins, of this Run or of one around it,
//	                       before anybody's turn: for loops
//	ctx of Run             done at level 2; without a Drain when its turn comes,
//	                       and when its Drain has failed
//	IsReady(ctx)           true between the start of all and level 1: for balancers
//	Hurry(ctx)             done at the second signal, with or without services
//
// A service without a Drain that must finish what it has watches Draining, and has a Drain
// that does nothing:
//
//	Drain: func(context.Context) error { return nil },
//
// # What outlives what
//
// Services stop in reverse order, so each may use those before it in the slice until it has drained.
//
//	made in run, before Run   a store, a pool of connections, a client: what does nothing by itself.
//	                          Close it with defer, when Run has returned.
//	Resource                  a batch, a worker, a keeper of leases: what is made with a ctx, and
//	                          works until its scope ends. It ends after those behind it have drained.
//	Service                   what takes work from outside.
//
// Nothing of the second kind is made with the ctx that [Main] gives: the first signal cancels
// that, and a server that drains would find its batch closed. docs/services.md has a picture.
//
// # Failures
//
// A service that fails ends the others: they drain. An error that says that
// the service was told to stop is no failure, and the same error unasked is one. If it says
// more than that, as "12 rows were not written: context canceled" does, [Main] writes that
// on a line to the standard error, and the exit status is what it would have been. With
// [async.Restart] among its Options a service is run again after a failure, from the
// moment on at which it was ready, until its turn to stop has come; one that fails before is not:
// a program that cannot start says so at once. If it has a Drain and waits to be run again when its
// turn comes, it is run once more, at once, and drained: what it has accepted is not lost.
//
// # Testing
//
// Run needs no Main. Call it with a ctx that the test cancels: that is level 1. All
// of the package works in a bubble of testing/synctest.
package service
