package pipeline

// maxCaches is how many caches a job may have, as in GitLab.
const maxCaches = 4

// A Cache are files that a job gets from the last that has kept them, if caches
// are kept at all.
type Cache struct {
	// Key names the cache; it may hold variables. KeyFiles are files whose content
	// makes the key in its place, after Key and a dash if that is given.
	Key      string
	KeyFiles []string

	// Fallback are keys that are tried, one after the other, if there is no cache
	// of Key.
	Fallback []string

	// Paths are patterns as those of Artifacts.
	Paths []string

	// Pull and Push say whether the files are fetched before the job, and kept
	// after it.
	Pull, Push bool

	// When is OnSuccess, OnFailure or Always: the outcome with which files are
	// kept.
	When When
}

// ignored returns why a keyword of jobs means nothing in this run.
func (p *parser) ignored(key string) (why string, ignored bool) {
	switch {
	case key == "cache" && !p.options.Cache:
		return noCache, true
	case key == "image" && p.options.Containers:
		return "", false
	}
	why, ignored = ignoredInJobs[key]
	return why, ignored
}

func readCache(p *parser, d *draft, n *node) {
	d.Caches = []Cache{}
	items := []*node{n}
	if n.kind == list {
		items = n.items
	}
	if len(items) > maxCaches {
		p.errorf(n.at, "cache has %d caches: a job may have %d", len(items), maxCaches)
		return
	}
	for _, item := range items {
		if c := p.cache(item); len(c.Paths) > 0 {
			d.Caches = append(d.Caches, c)
		}
	}
}

func (p *parser) cache(n *node) Cache {
	c := Cache{Key: "default", Pull: true, Push: true, When: OnSuccess}
	p.fields("cache", n, keys{
		"key": func(n *node) { p.cacheKey(&c, n) },
		"paths": func(n *node) {
			for _, item := range p.list("cache:paths", n) {
				if p.inside("cache:paths", item) {
					c.Paths = append(c.Paths, item.text)
				}
			}
		},
		"policy": func(n *node) {
			switch n.text {
			case "pull":
				c.Push = false
			case "push":
				c.Pull = false
			case "pull-push":
			default:
				p.should("cache:policy", n, "pull, push or pull-push")
			}
		},
		"when": func(n *node) {
			if when, ok := choice(p, "cache:when", n, OnSuccess, OnFailure, Always); ok {
				c.When = when
			}
		},
		"fallback_keys": func(n *node) { c.Fallback = asWritten(p.list("cache:fallback_keys", n)) },
	}, map[string]string{
		"untracked": "name the files in paths",
		"unprotect": "there are no protected branches",
	})
	return c
}

func (p *parser) cacheKey(c *Cache, n *node) {
	if n.kind != mapping {
		c.Key, _ = p.string("cache:key", n)
		return
	}
	c.Key = ""
	p.fields("cache:key", n, keys{
		"files":         func(n *node) { c.KeyFiles = asWritten(p.list("cache:key:files", n)) },
		"files_commits": func(n *node) { c.KeyFiles = asWritten(p.list("cache:key:files_commits", n)) },
		"prefix":        func(n *node) { c.Key, _ = p.string("cache:key:prefix", n) },
	}, nil)
	if len(c.KeyFiles) == 0 && c.Key == "" {
		c.Key = "default"
	}
}
