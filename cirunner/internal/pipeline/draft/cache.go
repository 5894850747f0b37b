package draft

import (
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
)

// maxCaches is how many caches a job may have, as in GitLab.
const maxCaches = 4

// ignored returns why a keyword of jobs means nothing in this run.
func (p *Parser) ignored(key string) (why string, ignored bool) {
	switch {
	case key == "cache" && !p.options.Cache:
		return noCache, true
	case key == "image" && p.options.Containers:
		return "", false
	}
	why, ignored = IgnoredInJobs[key]
	return why, ignored
}

func readCache(p *Parser, d *Draft, n *tree.Node) {
	d.Caches = []pipeline.Cache{}
	items := []*tree.Node{n}
	if n.Kind == tree.List {
		items = n.Items
	}
	if len(items) > maxCaches {
		p.Errorf(n.At, "cache has %d caches: a job may have %d", len(items), maxCaches)
		return
	}
	for _, item := range items {
		if c := p.cache(item); len(c.Paths) > 0 {
			d.Caches = append(d.Caches, c)
		}
	}
}

func (p *Parser) cache(n *tree.Node) pipeline.Cache {
	c := pipeline.Cache{Key: "default", Policy: pipeline.CachePullPush, When: pipeline.OnSuccess}
	p.Fields("cache", n, tree.Keys{
		"key": func(n *tree.Node) { p.cacheKey(&c, n) },
		"paths": func(n *tree.Node) {
			for _, item := range p.Texts("cache:paths", n) {
				if p.inside("cache:paths", item) {
					c.Paths = append(c.Paths, item.Text)
				}
			}
		},
		"policy": func(n *tree.Node) {
			if c.Policy = n.Text; !pipeline.IsPolicy(n.Text) && !strings.HasPrefix(n.Text, "$") {
				p.Should("cache:policy", n, "pull, push or pull-push")
			}
		},
		"when": func(n *tree.Node) {
			if when, ok := tree.Choice(p.Reader, "cache:when", n, pipeline.OnSuccess, pipeline.OnFailure, pipeline.Always); ok {
				c.When = when
			}
		},
		"fallback_keys": func(n *tree.Node) { c.Fallback = tree.AsWritten(p.Texts("cache:fallback_keys", n)) },
	}, map[string]string{
		"untracked": "name the files in paths",
		"unprotect": "all branches share the caches, protected or not",
	})
	return c
}

func (p *Parser) cacheKey(c *pipeline.Cache, n *tree.Node) {
	if n.Kind != tree.Mapping {
		c.Key, _ = p.String("cache:key", n)
		return
	}
	c.Key = ""
	p.Fields("cache:key", n, tree.Keys{
		"files":         func(n *tree.Node) { c.KeyFiles = tree.AsWritten(p.Texts("cache:key:files", n)) },
		"files_commits": func(n *tree.Node) { c.KeyFiles = tree.AsWritten(p.Texts("cache:key:files_commits", n)) },
		"prefix":        func(n *tree.Node) { c.Key, _ = p.String("cache:key:prefix", n) },
	}, nil)
	if len(c.KeyFiles) == 0 && c.Key == "" {
		c.Key = "default"
	}
}
