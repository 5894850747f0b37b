// Package asyncz shows the live tree of package async in a browser: what hangs, who waits for whom, who
// holds the last slot, what ignores that it was told to stop.
//
//	page := asyncz.Handler()
//	http.Handle("/debug/async/", http.StripPrefix("/debug/async", page))
//
// The page shows problems first, the worst before the others, then the tree: every task under its owner,
// with what it waits for. It folds, is searched and sorted by its address, so every view is a link that can
// be sent to a colleague. It works without JavaScript, and renews itself with it.
//
//	?format=text   the text of async.Dump, which curl gets without it; &width=120 cuts lines
//	?format=json   the schema ambit-tree/1; html is what browsers get
//	?under=4.2     only task 4.2 and what is in it
//	?name=crawl    tasks whose name or place has that in it, with what they stand in; name=#4.2 is one
//	?state=queued  also running, joining, pausing, told, waiting
//	?problem=ring  also straggler, full, restarts, unclaimed
//	?sort=name     also newest, live; the oldest first by default
//	?open=4.2,7.1  tasks that are unfolded although they have no problem; open=all
//	?alike=all     tasks that are alike are shown each for itself
//	?stacks=1      adds stacks of stragglers and of those that hold full limits
//	?span=10s      how much the time line of a recorder shows: also 10m and all, the last minute by default
//	?format=trace  that time line for ui.perfetto.dev, see [Recorder]; ?format=recording what the recorder has
//	?still=1       does not renew itself; ?format=saved is that to be kept as a file
//
// # What it costs
//
// Nothing while nobody looks. However many look, the tree is looked at at most once a second, and a look that took long
// is followed by a pause of twenty times that. One document has at most 2,000 rows, and says what it left out.
// [Page.Run] has the page look every five seconds: then it knows how old tasks are at least and at most.
// Stacks stop the world for a moment, see [async.Stacks], and are made only when they are asked for;
// [NoStacks] forbids them.
//
// # Who may see it
//
// Whoever reaches the handler sees names, places, types and counts: there is no password. The page shows no payloads,
// arguments, results or values of contexts, and texts of errors only with [Texts]. Put the handler behind a
// password, or listen on 127.0.0.1 or a unix socket. A request that comes in on a loopback address has to name
// loopback as its host, so no site that a browser visits can read the page through a name of its own; see
// [AnyHost]. The page acts on nothing: it answers GET and HEAD. It registers itself nowhere.
//
// The package is experimental: its names may change.
//
// [async.Stacks]: https://pkg.go.dev/github.com/ambit-go/ambit/async#Stacks
package asyncz
