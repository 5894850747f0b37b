package pipeline

import (
	"cmp"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Limits on include.
const (
	maxIncludes     = 150 // files, as in GitLab
	maxIncludeDepth = 10  // of files that include files
)

// withIncludes returns a file with what it includes under it: mappings are merged
// key by key, the file's own values and those of later includes are the stronger
// ones. dir is the directory that local includes are relative to.
func (p *parser) withIncludes(root *node, dir string, depth int) *node {
	include, found := root.find("include")
	if !found || include.kind == null {
		return root
	}
	if depth == maxIncludeDepth {
		p.errorf(include.at, "files include files more than %d deep", maxIncludeDepth)
		return root
	}
	items := []*node{include}
	if include.kind == list {
		items = include.items
	}
	e := &extender{parser: p}
	base := &node{kind: mapping, at: root.at}
	for _, item := range items {
		for _, f := range p.included(item, dir) {
			if p.includes++; p.includes > maxIncludes {
				p.errorf(item.at, "more than %d files are included", maxIncludes)
				return root
			}
			if n := p.includedFile(f, item.at); n != nil {
				base = e.merged(base, p.withIncludes(n, f.dir, depth+1))
			}
		}
	}
	return e.merged(base, &node{kind: mapping, at: root.at, fields: without(root.fields, "include")})
}

// An inclusion is a file that is to be included.
type inclusion struct {
	file string // its name for the operating system
	dir  string // what local includes in it are relative to
}

// includedFile reads a file that is included; nil if that is no mapping.
func (p *parser) includedFile(f inclusion, at mark) *node {
	data, err := readFile(f.file)
	if err != nil {
		p.errorf(at, "include: %v", err)
		return nil
	}
	n := p.file(filepath.ToSlash(f.file), data)
	switch {
	case n == nil:
		return nil
	case n.kind == null:
		return &node{kind: mapping, at: n.at}
	case n.kind != mapping:
		p.errorf(n.at, "an included file should be a mapping, not %s", n)
		return nil
	case n.has("spec"):
		p.errorf(n.keyAt("spec"), "spec is not supported: %s", unsupportedGlobally["spec"])
		return nil
	}
	return n
}

// included returns the files that an entry of include names.
func (p *parser) included(n *node, dir string) []inclusion {
	if n.kind == text {
		if strings.HasPrefix(n.text, "http://") || strings.HasPrefix(n.text, "https://") {
			return p.copied(n.at, "remote", remotePath(p.expand(n.text)))
		}
		return p.localFiles(n, dir)
	}
	if n.kind == mapping && !p.chosen(n.field("rules")) {
		return nil // also if there is no such file
	}
	var files []inclusion
	names := func(n *node, what, under string) {
		for _, name := range p.list("include:"+what, n) {
			files = append(files, p.copied(name.at, what, path.Join(under, p.expand(name.text)))...)
		}
	}
	p.fields("include", n, keys{
		"local":    func(n *node) { files = append(files, p.localFiles(n, dir)...) },
		"remote":   func(n *node) { files = append(files, p.copied(n.at, "remote", remotePath(p.expand(n.text)))...) },
		"template": func(n *node) { names(n, "template", "templates") },
		"project": func(project *node) {
			if !n.has("file") {
				p.errorf(n.at, "include:project needs file, the files to include")
			}
			names(n.field("file"), "project", p.expand(project.text))
		},
		"file": func(*node) {
			if !n.has("project") {
				p.errorf(n.at, "include:file needs project")
			}
		},
		"ref":       func(*node) {}, // a copy is of one
		"integrity": func(*node) {},
		"cache":     func(*node) {},
		"component": func(n *node) {
			name, _, _ := strings.Cut(p.expand(n.text), "@")
			files = append(files, p.copied(n.at, "component", name+".yml")...)
		},
		"inputs": func(n *node) { p.errorf(n.at, "include:inputs is not supported: use variables") },
		"rules":  func(*node) {}, // read first
	}, nil)
	return files
}

// chosen reports whether the rules of an entry of include take it in.
func (p *parser) chosen(n *node) bool {
	if n.kind == null {
		return true
	}
	rules := p.rules("include:rules", n, inInclude)
	i := p.matching(rules, p.run)
	return i >= 0 && rules[i].when != Never
}

func (p *parser) expand(s string) string { return strings.Join(expanded([]string{s}, p.run), "") }

// remotePath is where the copy of a file of the web lies.
func remotePath(url string) string {
	_, after, _ := strings.Cut(url, "://")
	before, _, _ := strings.Cut(after, "?")
	return before
}

// copied returns the copy of a file that is not the project's.
func (p *parser) copied(at mark, kind, name string) []inclusion {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	if p.options.IncludeDir == "" {
		p.errorf(at, "include:%s takes a file from elsewhere, and nothing is fetched: "+
			"put a copy at DIR/%s and say -include-dir DIR", kind, name)
		return nil
	}
	file := filepath.Join(p.options.IncludeDir, filepath.FromSlash(name))
	if _, err := os.Stat(file); err != nil {
		p.errorf(at, "include:%s: there is no copy at %s", kind, filepath.ToSlash(file))
		return nil
	}
	dir := p.options.IncludeDir
	if kind == "project" { // local includes of the copy are files of its project
		dir = strings.TrimSuffix(file, filepath.FromSlash(path.Join("/", p.withinProject(name))))
	}
	return []inclusion{{file, dir}}
}

// withinProject returns what of the name of a copied file lies in its project.
func (p *parser) withinProject(name string) string {
	parts := strings.Split(name, "/")
	for i := len(parts) - 1; i > 1; i-- { // the deepest directory with a file of that name is enough
		if _, err := os.Stat(filepath.Join(p.options.IncludeDir, filepath.Join(parts[:i]...), ".gitlab-ci.yml")); err == nil {
			return path.Join(parts[i:]...)
		}
	}
	return path.Join(parts[min(2, len(parts)-1):]...)
}

// localFiles returns the files of the project that a path or pattern means.
func (p *parser) localFiles(n *node, dir string) []inclusion {
	name, ok := p.string("include:local", n)
	if !ok {
		return nil
	}
	name = strings.TrimPrefix(path.Clean("/"+p.expand(name)), "/")
	if name == "" {
		p.errorf(n.at, "include:local: %s is no path and no pattern of files", quote(n.text))
		return nil
	}
	if ext := path.Ext(name); ext != ".yml" && ext != ".yaml" {
		p.errorf(n.at, "include:local: %s should end in .yml or .yaml", quote(n.text))
		return nil
	}
	found := []string{name}
	if strings.Contains(name, "*") {
		if found = wildcards(dir, name); len(found) == 0 { // which GitLab does not mind
			p.warn(n.at, "include:local without a file", "nothing in %s matches %s", cmp.Or(filepath.ToSlash(dir), "."), quote(name))
			return nil
		}
	}
	var files []inclusion
	for _, name := range found {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			files = append(files, inclusion{file, dir})
		}
	}
	if len(files) == 0 {
		p.errorf(n.at, "include:local: there is no file %s in %s", quote(name), cmp.Or(filepath.ToSlash(dir), "."))
	}
	return files
}
