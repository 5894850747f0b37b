package asyncz

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/record"
)

// A Page is a handler that shows the live tree. It may serve any number of requests at a time, and needs no
// closing.
type Page struct {
	opts    []async.LookOption // of each look
	anyHost bool
	stacks  bool
	texts   bool
	links   []pageLink
	rec     *record.Recorder // nil: nothing is recorded

	plain, deep looker // deep: with stacks

	mu    sync.Mutex // guards what follows
	ages  ages
	first map[problemKey]time.Time // when a problem that is still there was seen first
	past  []sample                 // the oldest first
	// waited is when a wait that goes on was seen first.
	waited   map[waitKey]time.Time
	recorded *record.Recording // as of the last look; nil without a recorder. Never changed, only replaced
}

// A pageLink leads to another page.
type pageLink struct{ Name, URL string }

// An Option changes a [Page].
type Option interface{ apply(*Page) }

type option func(*Page)

func (o option) apply(p *Page) { o(p) }

// Handler returns a page of the live tree, to be mounted where the caller likes.
//
//	http.Handle("/debug/async/", http.StripPrefix("/debug/async", asyncz.Handler()))
//
// # Details
//
// The page shows what stands at the root of the process, or what [Of] names. Its one document answers every path
// below the one that it is mounted at. A Page knows ages if its [Page.Run] is called.
func Handler(opts ...Option) *Page {
	p := &Page{stacks: true, first: make(map[problemKey]time.Time)}
	p.ages.scopes = make(map[int64]*marks)
	for _, opt := range opts {
		if opt == nil {
			panic("asyncz: Handler with a nil Option: leave it out")
		}
		opt.apply(p)
	}
	p.plain.opts = p.opts
	p.deep.opts = append(p.deep.opts, p.opts...)
	p.deep.opts = append(p.deep.opts, async.Stacks(mostStacks))
	return p
}

// mostStacks is how many stacks one document shows.
const mostStacks = 20

// Of has the page show the scope or task of ctx, and what is in it.
//
//	page := asyncz.Handler(asyncz.Of(ctx))
//
// # Details
//
// A ctx without one shows the root of ctx. A nil ctx panics.
func Of(ctx context.Context) Option {
	look := async.Of(ctx)
	return option(func(p *Page) { p.opts = append(p.opts, look) })
}

// Texts shows the texts of errors with which tasks were stopped or have failed.
//
//	page := asyncz.Handler(asyncz.Texts())
//
// # Details
//
// Texts are users' and may hold anything: a name, a key, an address. Without the option only the types of errors
// are shown. An Error method that hangs holds up the page.
func Texts() Option {
	return option(func(p *Page) { p.opts, p.texts = append(p.opts, async.Texts()), true })
}

// Recorder adds what r has recorded: the last failures, a time line, and a file to keep.
//
//	rec := record.New()
//	page := asyncz.Handler(asyncz.Recorder(rec))
//
// # Details
//
// The page draws a time line of the last tasks, counts what has ended in the last minute by name, and lists the
// last failures. A page that is saved has the recording in it, and plays it. Tasks that the recorder observes have
// an exact age. ?format=trace is a time line for ui.perfetto.dev, ?format=recording what [record.Open] reads. Texts
// of errors are in them only with [Texts]. The recorder has the scopes that it observes: see [async.Observe].
func Recorder(r *record.Recorder) Option {
	if r == nil {
		panic("asyncz: Recorder of nil: pass what record.New returns")
	}
	return option(func(p *Page) { p.rec = r })
}

// NoStacks refuses ?stacks=1, which stops the world for a moment.
//
//	page := asyncz.Handler(asyncz.NoStacks())
func NoStacks() Option { return option(func(p *Page) { p.stacks = false }) }

// Link adds a link to another page at the foot of the page.
//
//	page := asyncz.Handler(asyncz.Link("pprof", "/debug/pprof/"))
func Link(name, url string) Option {
	return option(func(p *Page) { p.links = append(p.links, pageLink{name, url}) })
}

// AnyHost serves requests that come in on a loopback address under whatever host name.
//
//	page := asyncz.Handler(asyncz.AnyHost())
//
// # Details
//
// It is meant for a proxy on the same machine that passes on the name it was asked for, and that protects the page.
// Without a proxy the check is what keeps a web site from reading the page: a browser on this machine may be led to
// 127.0.0.1 by the name of the site.
func AnyHost() Option { return option(func(p *Page) { p.anyHost = true }) }

// Run looks at the tree every five seconds until ctx is done, and then returns nil.
//
//	async.Go(ctx, page.Run, async.Daemon())
//
// # Details
//
// From these looks the page knows how old tasks are, and draws the last ten minutes. It needs some 256 bytes for
// each scope that lasts. Without Run the page knows what the requests themselves have seen.
func (p *Page) Run(ctx context.Context) error {
	for {
		p.look(false)
		if err := async.Sleep(ctx, each); err != nil {
			return nil
		}
	}
}

const each = 5 * time.Second

// ServeHTTP is a method of [http.Handler].
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	switch {
	case !p.anyHost && !hostIsOurs(r):
		http.Error(w, "this page was asked for under a host name that is not of this machine; see asyncz.AnyHost",
			http.StatusForbidden)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "this page only shows: it answers GET and HEAD", http.StatusMethodNotAllowed)
	default:
		p.serve(w, r)
	}
}

// hostIsOurs reports whether r, if it came in on a loopback address, names a loopback address as its host.
// Whoever makes a browser ask for 127.0.0.1 by a name of his own is refused. Requests that came in by a unix
// socket, which no browser can be led to, may name any host.
func hostIsOurs(r *http.Request) bool {
	addr, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if addr == nil || !isLoopback(addr.String()) {
		return true
	}
	return isLoopback(r.Host)
}

// isLoopback reports whether an address, with or without a port, is a loopback address, or localhost.
func isLoopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// secure has the browser run and load nothing but what is in the page, and show it nowhere else.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Accept")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}
