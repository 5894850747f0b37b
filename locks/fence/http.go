package fence

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/ambit-go/ambit/locks"
)

// Header is the header that carries a token: the value, the slot and the escaped key,
// "1763800000000000;0;invoice%2F42".
const Header = "Fencing-Token"

// String returns the token as it is in a header.
func (t Token) String() string {
	return strconv.FormatInt(t.Value, 10) + ";" + strconv.Itoa(t.Slot) + ";" + url.PathEscape(t.Key)
}

// Parse returns the token that a header has. An empty text is [ErrMissing].
func Parse(s string) (Token, error) {
	if s == "" {
		return Token{}, ErrMissing
	}
	value, rest, _ := strings.Cut(s, ";")
	slot, key, found := strings.Cut(rest, ";")
	n, err1 := strconv.ParseInt(value, 10, 64)
	i, err2 := strconv.Atoi(slot)
	k, err3 := url.PathUnescape(key)
	if !found || k == "" || n <= 0 || i < 0 || errors.Join(err1, err2, err3) != nil {
		return Token{}, errors.New("fence: the header is not a token: value;slot;key are expected")
	}
	return Token{k, i, n}, nil
}

// Transport returns a RoundTripper that sends the token of the lock in the ctx of each
// request, see [locks.From]. A request whose lock is lost is not sent: its error is the
// [*locks.LostError]. One whose ctx has no lock goes as it is, and one that has a [Header]
// already keeps it. base nil is http.DefaultTransport.
func Transport(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return transport{base}
}

type transport struct{ base http.RoundTripper }

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	h := locks.From(r.Context())
	if h == nil || r.Header.Get(Header) != "" {
		return t.base.RoundTrip(r)
	}
	if err := h.Err(); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // a RoundTripper always closes it
		}
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set(Header, Of(h).String())
	return t.base.RoundTrip(r)
}

// Require returns a handler that passes on requests with a good token alone: 428 without
// one, 400 with one that is none, 412 with a stale one. key says which lock guards what the
// request is about: a token of another lock is 412, too. It is nil if any key will do.
//
// A request that was passed on may be slower than a later one with a newer token: what next
// does to the resource, it does with [Register.Do] or another check of its own, and takes the
// token from [Parse] of the header. Require by itself is enough where next works on one
// request at a time.
func Require(r *Register, key func(*http.Request) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		t, err := Parse(q.Header.Get(Header))
		switch {
		case errors.Is(err, ErrMissing):
			http.Error(w, err.Error(), http.StatusPreconditionRequired)
			return
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		case key != nil && key(q) != t.Key:
			http.Error(w, "fence: the token is of another lock", http.StatusPreconditionFailed)
			return
		}
		if err := r.Check(t); err != nil {
			http.Error(w, err.Error(), http.StatusPreconditionFailed)
			return
		}
		next.ServeHTTP(w, q)
	})
}
