package parse

import (
	"cmp"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/draft"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
)

// Limits on include.
const (
	maxIncludes     = 150 // files, as in GitLab
	maxIncludeDepth = 10  // of files that include files
)

// withIncludes returns a file with what it includes under it: mappings are merged
// key by key, the file's own values and those of later includes are the stronger
// ones. dir is the directory that local includes are relative to.
func (p *compiler) withIncludes(root *tree.Node, dir string, depth int) *tree.Node {
	include, found := root.Find("include")
	if !found || include.Kind == tree.Null {
		return root
	}
	if depth == maxIncludeDepth {
		p.Errorf(include.At, "files include files more than %d deep", maxIncludeDepth)
		return root
	}
	items := []*tree.Node{include}
	if include.Kind == tree.List {
		items = include.Items
	}
	base := &tree.Node{Kind: tree.Mapping, At: root.At}
	for _, item := range items {
		for _, f := range p.included(item, dir) {
			if p.includes++; p.includes > maxIncludes {
				p.Errorf(item.At, "more than %d files are included", maxIncludes)
				return root
			}
			if n := p.includedFile(f, item.At); n != nil {
				base = p.Merged(base, p.withIncludes(n, f.dir, depth+1))
			}
		}
	}
	return p.Merged(base, &tree.Node{Kind: tree.Mapping, At: root.At, Fields: tree.Without(root.Fields, "include")})
}

// An inclusion is a file that is to be included.
type inclusion struct {
	file string // its name for the operating system
	dir  string // what local includes in it are relative to
}

// includedFile reads a file that is included; nil if that is no mapping.
func (p *compiler) includedFile(f inclusion, at tree.Mark) *tree.Node {
	data, err := tree.ReadFile(f.file)
	if err != nil {
		p.Errorf(at, "include: %v", err)
		return nil
	}
	n := p.Read(filepath.ToSlash(f.file), data)
	switch {
	case n == nil:
		return nil
	case n.Kind == tree.Null:
		return &tree.Node{Kind: tree.Mapping, At: n.At}
	case n.Kind != tree.Mapping:
		p.Errorf(n.At, "an included file should be a mapping, not %s", n)
		return nil
	case n.Has("spec"):
		p.Errorf(n.KeyAt("spec"), "spec is not supported: %s", draft.UnsupportedGlobally["spec"])
		return nil
	}
	return n
}

// included returns the files that an entry of include names.
func (p *compiler) included(n *tree.Node, dir string) []inclusion {
	if n.Kind == tree.Text {
		if strings.HasPrefix(n.Text, "http://") || strings.HasPrefix(n.Text, "https://") {
			return p.copied(n.At, "remote", remotePath(p.run.Expand(n.Text)))
		}
		return p.localFiles(n, dir)
	}
	if n.Kind == tree.Mapping && !p.chosen(n.Field("rules")) {
		return nil // also if there is no such file
	}
	var files []inclusion
	names := func(n *tree.Node, what, under string) {
		for _, name := range p.List("include:"+what, n) {
			files = append(files, p.copied(name.At, what, path.Join(under, p.run.Expand(name.Text)))...)
		}
	}
	p.Fields("include", n, tree.Keys{
		"local": func(n *tree.Node) { files = append(files, p.localFiles(n, dir)...) },
		"remote": func(n *tree.Node) {
			files = append(files, p.copied(n.At, "remote", remotePath(p.run.Expand(n.Text)))...)
		},
		"template": func(n *tree.Node) { names(n, "template", "templates") },
		"project": func(project *tree.Node) {
			if !n.Has("file") {
				p.Errorf(n.At, "include:project needs file, the files to include")
			}
			names(n.Field("file"), "project", p.run.Expand(project.Text))
		},
		"file": func(*tree.Node) {
			if !n.Has("project") {
				p.Errorf(n.At, "include:file needs project")
			}
		},
		"ref":       func(*tree.Node) {}, // a copy is of one
		"integrity": func(*tree.Node) {},
		"cache":     func(*tree.Node) {},
		"component": func(n *tree.Node) {
			name, _, _ := strings.Cut(p.run.Expand(n.Text), "@")
			files = append(files, p.copied(n.At, "component", name+".yml")...)
		},
		"inputs": func(n *tree.Node) { p.Errorf(n.At, "include:inputs is not supported: use variables") },
		"rules":  func(*tree.Node) {}, // read first
	}, nil)
	return files
}

// chosen reports whether the rules of an entry of include take it in.
func (p *compiler) chosen(n *tree.Node) bool {
	if n.Kind == tree.Null {
		return true
	}
	rules := p.Rules("include:rules", n, draft.InInclude)
	i := p.run.Matching(rules, p.run.Vars)
	return i >= 0 && rules[i].When != pipeline.Never
}

// remotePath is where the copy of a file of the web lies.
func remotePath(url string) string {
	_, after, _ := strings.Cut(url, "://")
	before, _, _ := strings.Cut(after, "?")
	return before
}

// copied returns the copy of a file that is not the project's.
func (p *compiler) copied(at tree.Mark, kind, name string) []inclusion {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	if p.options.IncludeDir == "" {
		p.Errorf(at, "include:%s takes a file from elsewhere, and nothing is fetched: "+
			"put a copy at DIR/%s and say -include-dir DIR", kind, name)
		return nil
	}
	file := filepath.Join(p.options.IncludeDir, filepath.FromSlash(name))
	if _, err := os.Stat(file); err != nil {
		p.Errorf(at, "include:%s: there is no copy at %s", kind, filepath.ToSlash(file))
		return nil
	}
	dir := p.options.IncludeDir
	if kind == "project" { // local includes of the copy are files of its project
		dir = strings.TrimSuffix(file, filepath.FromSlash(path.Join("/", p.withinProject(name))))
	}
	return []inclusion{{file, dir}}
}

// withinProject returns what of the name of a copied file lies in its project.
func (p *compiler) withinProject(name string) string {
	parts := strings.Split(name, "/")
	for i := len(parts) - 1; i > 1; i-- { // the deepest directory with a file of that name is enough
		if _, err := os.Stat(filepath.Join(p.options.IncludeDir, filepath.Join(parts[:i]...), ".gitlab-ci.yml")); err == nil {
			return path.Join(parts[i:]...)
		}
	}
	return path.Join(parts[min(2, len(parts)-1):]...)
}

// localFiles returns the files of the project that a path or pattern means.
func (p *compiler) localFiles(n *tree.Node, dir string) []inclusion {
	name, ok := p.String("include:local", n)
	if !ok {
		return nil
	}
	name = strings.TrimPrefix(path.Clean("/"+p.run.Expand(name)), "/")
	if name == "" {
		p.Errorf(n.At, "include:local: %s is no path and no pattern of files", words.Quote(n.Text))
		return nil
	}
	if ext := path.Ext(name); ext != ".yml" && ext != ".yaml" {
		p.Errorf(n.At, "include:local: %s should end in .yml or .yaml", words.Quote(n.Text))
		return nil
	}
	found := []string{name}
	if strings.Contains(name, "*") {
		if found = wildcards(dir, name); len(found) == 0 { // which GitLab does not mind
			p.Warn(n.At, "include:local without a file", "nothing in %s matches %s", cmp.Or(filepath.ToSlash(dir), "."), words.Quote(name))
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
		p.Errorf(n.At, "include:local: there is no file %s in %s", words.Quote(name), cmp.Or(filepath.ToSlash(dir), "."))
	}
	return files
}
