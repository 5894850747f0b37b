package main

import (
	"io"
	"net/url"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// linkAttr is the attribute that holds the link, for each element that has one.
var linkAttr = map[atom.Atom]string{
	atom.A: "href", atom.Area: "href", atom.Link: "href",
	atom.Audio: "src", atom.Embed: "src", atom.Frame: "src", atom.Iframe: "src",
	atom.Img: "src", atom.Script: "src", atom.Source: "src", atom.Track: "src", atom.Video: "src",
}

// maxLinks is how many links of a page are looked at. It bounds the time that
// goes into a page, as maxBody does its memory.
const maxLinks = 10_000

// extractLinks returns the http and https URLs that the HTML in r, fetched from
// page, points to: absolute, normalized, each once, in order. HTML that is
// malformed or cut off gives the links that can be made out. more says that
// there are more than maxLinks.
func extractLinks(page *url.URL, r io.Reader) (links []*url.URL, more bool) {
	refs, base, more := scanTags(r)
	seen := make(map[string]bool, len(refs))
	root := baseURL(page, base)
	for _, ref := range refs {
		u := resolve(root, ref)
		if u == nil || seen[u.String()] {
			continue
		}
		seen[u.String()] = true
		links = append(links, u)
	}
	return links, more
}

// scanTags returns the references in r, as they are written, and that of the
// first <base href>, which holds for all of them, also for those before it. It
// reads tags rather than building a tree, so nothing a page may hold makes it
// recurse.
func scanTags(r io.Reader) (refs []string, base string, more bool) {
	z := html.NewTokenizer(r)
	z.SetMaxBuf(maxBody)
	seen := make(map[string]bool)
	haveBase := false
	for {
		switch z.Next() {
		case html.ErrorToken: // the end, or as far as one can read
			return refs, base, false
		case html.StartTagToken, html.SelfClosingTagToken:
		default:
			continue
		}
		name, hasAttr := z.TagName()
		tag := atom.Lookup(name)
		if tag == atom.Noscript { // we run no scripts, so its content counts
			z.NextIsNotRawText()
		}
		if tag == atom.Base && !haveBase {
			base, haveBase = attr(z, hasAttr, "href")
			continue
		}
		ref, ok := attr(z, hasAttr, linkAttr[tag])
		if !ok || seen[ref] {
			continue
		}
		if len(refs) == maxLinks {
			return refs, base, true
		}
		seen[ref] = true
		refs = append(refs, ref)
	}
}

// attr returns the attribute of the tag that z stands at; of several with one
// name the first counts. No attribute is called "".
func attr(z *html.Tokenizer, more bool, want string) (string, bool) {
	for more && want != "" {
		var key, value []byte
		key, value, more = z.TagAttr()
		if string(key) == want {
			return string(value), true
		}
	}
	return "", false
}

// baseURL is what the references of page are relative to.
func baseURL(page *url.URL, base string) *url.URL {
	if base == "" {
		return page
	}
	if u := resolve(page, base); u != nil {
		return u
	}
	return page
}

// urlSpace takes out of a reference what browsers do: line breaks and tabs
// anywhere, spaces around it.
var urlSpace = strings.NewReplacer("\t", "", "\n", "", "\r", "")

// resolve returns the URL that ref means on a page at base, or nil if it is none
// that can be fetched: mailto:, javascript:, or not a URL at all.
func resolve(base *url.URL, ref string) *url.URL {
	u, err := base.Parse(strings.Trim(urlSpace.Replace(ref), " \f"))
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Opaque != "" || !hasHost(u) {
		return nil
	}
	u = normalize(u)
	if again, err := url.Parse(u.String()); err != nil || again.String() != u.String() {
		return nil // a host that is none
	}
	return u
}

// normalize returns u in a form that is the same for all spellings which RFC
// 3986, section 6.2, says are equal: no fragment, no credentials, no default
// port, lower-case host, a path, and escapes only where they are needed.
func normalize(u *url.URL) *url.URL {
	path := canonicalEscapes(u.EscapedPath())
	ref := &url.URL{RawPath: path, RawQuery: canonicalEscapes(u.RawQuery)}
	ref.Path, _ = url.PathUnescape(path) // it is well escaped now
	n := u.ResolveReference(ref)         // which removes dot segments
	n.User, n.Fragment, n.RawFragment, n.ForceQuery = nil, "", "", false
	n.Host = strings.TrimSuffix(strings.ToLower(n.Host), ":")
	n.Host = strings.TrimSuffix(n.Host, defaultPort[n.Scheme])
	if n.Path == "" {
		n.Path = "/"
	}
	return n
}

var defaultPort = map[string]string{"http": ":80", "https": ":443"}

// canonicalEscapes returns s with upper-case escapes, none for the characters
// that never need one, and one for each byte that no URL may hold.
func canonicalEscapes(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c, escaped := s[i], false
		if c == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]) {
			c, escaped = unhex(s[i+1])<<4|unhex(s[i+2]), true
			i += 2
		}
		if isUnreserved(c) || !escaped && isReserved(c) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}

func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

func isReserved(c byte) bool { return strings.IndexByte("!$&'()*+,;=:@/?", c) >= 0 }

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&^0x20 - 'A' + 10
}

// hasHost reports whether u names a host. An address with colons is one only in
// brackets.
func hasHost(u *url.URL) bool {
	host := u.Hostname()
	return host != "" && (strings.HasPrefix(u.Host, "[") || !strings.Contains(host, ":"))
}
