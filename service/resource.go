package service

import "context"

// Resource returns a service that other services stand on: a batch, a worker, a keeper of leases,
// whatever is made with a ctx and does something until it is closed.
//
//	journal := service.Resource("journal", func(ctx context.Context) error { lines = batch.New(ctx, write); return nil })
//	err := service.Run(ctx, []service.Service{journal, service.HTTP("http", l, server)}) // server uses lines
//
// # Details
//
// open is called when the turn of the service to start comes, and the next service is started when it
// has returned: open need not call [Ready]. Put a Resource before those that use it. The tasks that open has
// started, and its hooks of [async.OnExit], belong to the scope of its ctx, which lasts until the services
// behind it in the slice have drained. Then the scope ends well: a batch is flushed, a worker is drained,
// hooks are called, last in, first out. Level 2 cancels the ctx, as that of any service, and hooks still have
// their time.
//
// An error of open ends the run, and those that were started before are drained. A failure of what open
// has started does the same, at any time. Startup of the result is [Forever]: set it if open may hang.
// The ctx that [Main] gives is cancelled by the first signal, so what is made with that is closed while
// servers still finish what they have accepted. A nil open panics.
func Resource(name string, open func(ctx context.Context) error) Service {
	if open == nil {
		panic("service: Resource with a nil function: pass what opens " + name)
	}
	return Service{
		Name:     name,
		Startup:  Forever,
		reopened: true,
		Drain:    func(context.Context) error { return nil }, // ctx lives on, and Run sees the turn
		Run: func(ctx context.Context) error {
			if err := open(ctx); err != nil {
				return err
			}
			Ready(ctx)
			select {
			case <-memberOf(ctx).turn:
			case <-ctx.Done():
			}
			return nil
		},
	}
}
