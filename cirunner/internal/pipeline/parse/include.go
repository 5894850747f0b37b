package parse

import (
	"cmp"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/draft"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/inputs"
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
// ones. Local includes are relative to the directory of from.
func (p *compiler) withIncludes(root *tree.Node, from inclusion, depth int) *tree.Node {
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
		for _, f := range p.included(item, from) {
			if p.includes++; p.includes > maxIncludes {
				p.Errorf(item.At, "more than %d files are included", maxIncludes)
				return root
			}
			if n := p.includedFile(f, item.At); n != nil {
				base = p.Merged(base, p.withIncludes(n, f, depth+1))
			}
		}
	}
	return p.Merged(base, &tree.Node{Kind: tree.Mapping, At: root.At, Fields: tree.Without(root.Fields, "include")})
}

// An inclusion is a file that is to be included.
type inclusion struct {
	file   string     // its name for the operating system
	dir    string     // what local includes in it are relative to
	of     string     // whose directory that is, in messages; empty for the project's
	inputs *tree.Node // the values that it is given; null without
}

// name is what messages call the file.
func (f inclusion) name() string {
	if f.of == "" {
		return filepath.ToSlash(f.file)
	}
	rel, _ := filepath.Rel(f.dir, f.file) // which it is below
	return f.of + ":" + filepath.ToSlash(rel)
}

// includedFile reads a file that is included; nil if that is no mapping.
func (p *compiler) includedFile(f inclusion, at tree.Mark) *tree.Node {
	data, err := tree.ReadFile(f.file)
	if err != nil {
		p.Errorf(at, "include: %v", err)
		return nil
	}
	n := p.readWith(f.name(), data, inputs.Given{Values: f.inputs, At: at})
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
func (p *compiler) included(n *tree.Node, from inclusion) []inclusion {
	if n.Kind == tree.Text {
		if strings.HasPrefix(n.Text, "http://") || strings.HasPrefix(n.Text, "https://") {
			return p.copied(n.At, "remote", remotePath(p.run.Expand(n.Text)))
		}
		return p.localFiles(n, from)
	}
	if n.Kind == tree.Mapping && !p.chosen(n.Field("rules")) {
		return nil // also if there is no such file
	}
	var files []inclusion
	add := func(found []inclusion) { files = append(files, found...) }
	p.Fields("include", n, tree.Keys{
		"local":  func(n *tree.Node) { add(p.localFiles(n, from)) },
		"remote": func(remote *tree.Node) { add(p.remoteFile(remote, n.Field("integrity"))) },
		"template": func(n *tree.Node) {
			for _, name := range p.List("include:template", n) {
				add(p.copied(name.At, "template", path.Join("templates", p.run.Expand(name.Text))))
			}
		},
		"project": func(project *tree.Node) {
			if !n.Has("file") {
				p.Errorf(n.At, "include:project needs file, the files to include")
			}
			for _, name := range p.List("include:project", n.Field("file")) {
				add(p.projectFile(name, p.run.Expand(project.Text), p.run.Expand(n.Field("ref").Text)))
			}
		},
		"file": func(*tree.Node) {
			if !n.Has("project") {
				p.Errorf(n.At, "include:file needs project")
			}
		},
		"ref": func(*tree.Node) {}, // with project
		"integrity": func(*tree.Node) {
			if !n.Has("remote") {
				p.Errorf(n.At, "include:integrity is for remote")
			}
		},
		"cache":     func(*tree.Node) {}, // how long a server keeps a copy
		"component": func(n *tree.Node) { add(p.component(n)) },
		"inputs":    func(n *tree.Node) { p.IsMapping("include:inputs", n) },
		"rules":     func(*tree.Node) {}, // read first
	}, nil)
	for i := range files {
		files[i].inputs = n.Field("inputs")
	}
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

// localFiles returns the files of the project that a path or pattern means.
func (p *compiler) localFiles(n *tree.Node, from inclusion) []inclusion {
	dir := from.dir
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
			files = append(files, inclusion{file: file, dir: dir, of: from.of})
		}
	}
	if len(files) == 0 {
		p.Errorf(n.At, "include:local: there is no file %s in %s", words.Quote(name), cmp.Or(filepath.ToSlash(dir), "."))
	}
	return files
}
