package main

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNormalizeIsTheSameForEqualSpellings(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"nothing to do", "http://h/a?q=1", "http://h/a?q=1"},
		{"fragment", "http://h/a#top", "http://h/a"},
		{"empty fragment", "http://h/a#", "http://h/a"},
		{"empty query", "http://h/a?", "http://h/a"},
		{"no path", "http://h", "http://h/"},
		{"no path but a query", "http://h?q", "http://h/?q"},
		{"host in capitals", "HTTP://WWW.Example.COM/Path", "http://www.example.com/Path"},
		{"default port", "http://h:80/", "http://h/"},
		{"default port of https", "https://h:443/", "https://h/"},
		{"other port", "http://h:443/", "http://h:443/"},
		{"empty port", "http://h:/", "http://h/"},
		{"IPv6", "http://[::1]:80/", "http://[::1]/"},
		{"credentials", "http://me:secret@h/", "http://h/"},
		{"dot segments", "http://h/a/./b/../c", "http://h/a/c"},
		{"escaped dot segments", "http://h/a/%2e%2E/c", "http://h/c"},
		{"above the root", "http://h/../../a", "http://h/a"},
		{"escapes that are not needed", "http://h/%7euser/%61", "http://h/~user/a"},
		{"escapes in lower case", "http://h/a%2fb%c3%a9", "http://h/a%2Fb%C3%A9"},
		{"missing escapes", "http://h/é b?é b|", "http://h/%C3%A9%20b?%C3%A9%20b%7C"},
		{"query is kept in order", "http://h/?b=2&a=1", "http://h/?b=2&a=1"},
		{"empty segments are kept", "http://h//a//b/", "http://h//a//b/"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			u, err := url.Parse(test.in)
			require.NoError(t, err)
			once := normalize(u)
			assert.Equal(t, test.want, once.String())
			assert.Equal(t, test.want, normalize(once).String(), "again")
		})
	}
}

func TestExtractLinks(t *testing.T) {
	tests := []struct {
		name, html string
		want       []string
	}{
		{"none", `<p>text</p>`, nil},
		{"relative, absolute, rooted", `<a href="x"><a href="/y"><a href="http://h/z"><a href="//h/w">`, []string{"http://h/dir/x", "http://h/y", "http://h/z", "http://h/w"}},
		{"once each, whatever the fragment", `<a href="x"><a href="x#1"><a href="./x#2"><a href="/dir/x">`, []string{"http://h/dir/x"}},
		{"the page itself", `<a href="#top"><a href="">`, []string{"http://h/dir/page"}},
		{"all kinds of elements", `<link href=a><script src=b></script><img src=c><iframe src=d></iframe><area href=e><source src=f>`, []string{"http://h/dir/a", "http://h/dir/b", "http://h/dir/c", "http://h/dir/d", "http://h/dir/e", "http://h/dir/f"}},
		{"self-closing and capitals", `<IMG SRC="a"/><A HREF='b'>`, []string{"http://h/dir/a", "http://h/dir/b"}},
		{"other hosts are the crawl's affair", `<a href="http://other/">`, []string{"http://other/"}},
		{"other schemes", `<a href="mailto:a@b"><a href="javascript:x()"><a href="data:,x"><a href="ftp://h/"><a href="https://h/">`, []string{"https://h/"}},
		{"not a URL", `<a href="http://[::1"><a href="%zz"><a href="http://"><a href="http:x/y">`, nil},
		{"entities", `<a href="?a=1&amp;b=2">`, []string{"http://h/dir/page?a=1&b=2"}},
		{"space in and around", "<a href=\" a b\n c\t\">", []string{"http://h/dir/a%20b%20c"}},
		{"comments and scripts hold no links", `<!-- <a href="a"> --><script>"<a href='b'>"</script><style><a href="c"></style><a href="d">`, []string{"http://h/dir/d"}},
		{"noscript does", `<noscript><a href="a"></noscript>`, []string{"http://h/dir/a"}},
		{"base", `<base href="/b/"><a href="x">`, []string{"http://h/b/x"}},
		{"base after the link", `<a href="x"><base href="http://other/b/">`, []string{"http://other/b/x"}},
		{"only the first base", `<base target="_top"><base href="/b/"><base href="/c/"><a href="x">`, []string{"http://h/b/x"}},
		{"a base that is none", `<base href="javascript:void"><a href="x">`, []string{"http://h/dir/x"}},
		{"the first of two attributes", `<a href="x" href="y">`, []string{"http://h/dir/x"}},
		{"malformed", `<a href="x"<b><a href=y <p <a "href='z'><a href="w`, []string{"http://h/dir/x", "http://h/dir/y"}},
	}
	page := mustParse(t, "http://h/dir/page")
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			links, more := extractLinks(page, strings.NewReader(test.html))
			assert.False(t, more)
			for _, u := range links {
				got = append(got, u.String())
			}
			assert.Equal(t, test.want, got)
		})
	}
}

func TestExtractLinksIsBounded(t *testing.T) {
	page := mustParse(t, "http://h/")
	var html strings.Builder
	for i := range maxLinks {
		fmt.Fprintf(&html, `<a href="%d"><a href="%[1]d">`, i)
	}
	links, more := extractLinks(page, strings.NewReader(html.String()))
	assert.Len(t, links, maxLinks)
	assert.False(t, more)
	html.WriteString(`<a href="x">`)
	links, more = extractLinks(page, strings.NewReader(html.String()))
	assert.Len(t, links, maxLinks)
	assert.True(t, more)
}

func mustParse(t testing.TB, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	require.NoError(t, err)
	return u
}

// FuzzLinks: whatever a page holds, its links are URLs that can be requested
// and that are their own normal form.
func FuzzLinks(f *testing.F) {
	for _, seed := range []string{
		`<a href="x">`, `<base href="//h2:80/%2e/"><a href="../y?q#f">`, `<img src=//[::1]:80>`,
		`<a href="http://a%2fb/">`, `<noscript><iframe src="?%">`, "<a href='ht\ntp://h/'>", `<a href="//h:/%zz">`,
	} {
		f.Add(seed)
	}
	page := mustParse(f, "http://h/dir/page")
	f.Fuzz(func(t *testing.T, html string) {
		seen := make(map[string]bool)
		links, _ := extractLinks(page, strings.NewReader(html))
		for _, u := range links {
			s := u.String()
			if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Fragment != "" || u.User != nil || !strings.HasPrefix(u.Path, "/") {
				t.Errorf("%q is not an absolute http URL without a fragment", s)
			}
			if seen[s] {
				t.Errorf("%q was found twice", s)
			}
			seen[s] = true
			again, err := url.Parse(s)
			if err != nil {
				t.Fatalf("%q does not parse: %v", s, err)
			}
			if n := normalize(again).String(); n != s {
				t.Errorf("%q is normalized to %q", s, n)
			}
			if strings.ContainsAny(again.RequestURI(), " \r\n") {
				t.Errorf("%q breaks the request line", s)
			}
		}
	})
}
