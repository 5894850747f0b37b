package parse

import (
	"cmp"
	"os"
	"path"
	"path/filepath"
	"slices"
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
func (c *compiler) withIncludes(root *tree.Node, from inclusion, depth int) *tree.Node {
	include, found := root.Find("include")
	if !found || include.Kind == tree.Null {
		return root
	}
	if depth == maxIncludeDepth {
		c.Errorf(include.At, "files include files more than %d deep", maxIncludeDepth)
		return root
	}
	items := []*tree.Node{include}
	if include.Kind == tree.List {
		items = include.Items
	}
	base := &tree.Node{Kind: tree.Mapping, At: root.At}
	for _, item := range items {
		for _, f := range c.included(item, from) {
			if c.includes++; c.includes > maxIncludes {
				c.Errorf(item.At, "more than %d files are included", maxIncludes)
				return root
			}
			if n := c.includedFile(f, item.At); n != nil {
				base = c.Merged(base, c.withIncludes(n, f, depth+1))
			}
		}
	}
	return c.Merged(base, &tree.Node{Kind: tree.Mapping, At: root.At, Fields: tree.Without(root.Fields, "include")})
}

// An inclusion is a file that is to be included.
type inclusion struct {
	file   string     // its name for the operating system
	dir    string     // what local includes in it are relative to
	of     string     // whose directory that is, in messages; empty for the project's
	inputs *tree.Node // the values that it is given; null without
	data   []byte     // of one that is no file of the operating system
}

// name is what messages call the file.
func (f inclusion) name() string {
	if f.of == "" || f.data != nil {
		return filepath.ToSlash(f.file)
	}
	rel, _ := filepath.Rel(f.dir, f.file) // which it is below
	return f.of + ":" + filepath.ToSlash(rel)
}

// includedFile reads a file that is included; nil if that is no mapping.
func (c *compiler) includedFile(f inclusion, at tree.Mark) *tree.Node {
	data, err := f.data, error(nil)
	if data == nil {
		data, err = tree.ReadFile(f.file)
	}
	if err != nil {
		c.Errorf(at, "include: %v", err)
		return nil
	}
	n := c.readWith(f.name(), data, inputs.Given{Values: f.inputs, At: at})
	switch {
	case n == nil:
		return nil
	case n.Kind == tree.Null:
		return &tree.Node{Kind: tree.Mapping, At: n.At}
	case n.Kind != tree.Mapping:
		c.Errorf(n.At, "an included file should be a mapping, not %s", n)
		return nil
	case n.Has("spec"):
		c.Errorf(n.KeyAt("spec"), "spec is not supported: %s", draft.UnsupportedGlobally["spec"])
		return nil
	}
	return n
}

// included returns the files that an entry of include names.
func (c *compiler) included(n *tree.Node, from inclusion) []inclusion {
	if n.Kind == tree.Text {
		if strings.HasPrefix(n.Text, "http://") || strings.HasPrefix(n.Text, "https://") {
			return c.copied(n.At, "remote", remotePath(c.run.Expand(n.Text)))
		}
		return c.localFiles(n, from)
	}
	if n.Kind == tree.Mapping && !c.chosen(n.Field("rules")) {
		return nil // also if there is no such file
	}
	c.isOneFile(n)
	entry := n
	var files []inclusion
	add := func(found []inclusion) { files = append(files, found...) }
	c.Fields("include", n, tree.Keys{
		"local":  func(n *tree.Node) { add(c.localFiles(n, from)) },
		"remote": func(remote *tree.Node) { add(c.remoteFile(remote, n.Field("integrity"))) },
		"template": func(n *tree.Node) {
			for _, name := range c.List("include:template", n) {
				add(c.copied(name.At, "template", path.Join("templates", c.run.Expand(name.Text))))
			}
		},
		"project": func(project *tree.Node) { add(c.projectFiles(n, project)) },
		"file": func(*tree.Node) {
			if !n.Has("project") {
				c.Errorf(n.At, "include:file needs project")
			}
		},
		"ref": func(n *tree.Node) {
			if !entry.Has("project") {
				c.Warn(n.At, "include:ref", "it has no effect without project")
			}
		},
		"integrity": func(*tree.Node) { c.isFor(n, "integrity", "remote") },
		"cache": func(n *tree.Node) {
			c.Ignore(n.At, "include:cache", "no copy is kept from run to run but those of -include-dir")
		},
		"component": func(n *tree.Node) { add(c.component(n)) },
		"inputs":    func(n *tree.Node) { c.IsMapping("include:inputs", n) },
		"rules":     func(*tree.Node) {}, // read first
		"artifact":  func(*tree.Node) { add(c.artifact(n)) },
		"job":       func(*tree.Node) { c.isFor(n, "job", "artifact") },
	}, nil)
	for i := range files {
		files[i].inputs = n.Field("inputs")
	}
	return files
}

// kindsOfFiles are the keywords of which an entry of include has one.
var kindsOfFiles = []string{"local", "remote", "template", "project", "component", "artifact"}

func (c *compiler) isOneFile(n *tree.Node) {
	others := slices.DeleteFunc(slices.Clone(kindsOfFiles), func(kind string) bool { return !n.Has(kind) })
	if n.Kind == tree.Mapping && len(others) != 1 {
		c.Errorf(n.At, "an entry of include has one of %s", words.OneOf(kindsOfFiles))
	}
}

// isFor reports a keyword that is nothing without another.
func (c *compiler) isFor(n *tree.Node, keyword, of string) {
	if !n.Has(of) {
		c.Errorf(n.At, "include:%s is for %s", keyword, of)
	}
}

// chosen reports whether the rules of an entry of include take it in.
func (c *compiler) chosen(n *tree.Node) bool {
	if n.Kind == tree.Null {
		return true
	}
	rules := c.Rules("include:rules", n, draft.InInclude)
	i := c.run.Matching(rules, c.run.Vars)
	return i >= 0 && rules[i].When != pipeline.Never
}

// localFiles returns the files of the project that a path or pattern means.
func (c *compiler) localFiles(n *tree.Node, from inclusion) []inclusion {
	dir := from.dir
	name, ok := c.String("include:local", n)
	if !ok {
		return nil
	}
	name = strings.TrimPrefix(path.Clean("/"+c.run.Expand(name)), "/")
	if name == "" {
		c.Errorf(n.At, "include:local: %s is no path and no pattern of files", words.Quote(n.Text))
		return nil
	}
	if ext := path.Ext(name); ext != ".yml" && ext != ".yaml" {
		c.Errorf(n.At, "include:local: %s should end in .yml or .yaml", words.Quote(n.Text))
		return nil
	}
	found := []string{name}
	if strings.Contains(name, "*") {
		if found = wildcards(dir, name); len(found) == 0 { // which GitLab does not mind
			c.Warn(n.At, "include:local without a file", "nothing in %s matches %s", cmp.Or(filepath.ToSlash(dir), "."), words.Quote(name))
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
		c.Errorf(n.At, "include:local: there is no file %s in %s", words.Quote(name), cmp.Or(filepath.ToSlash(dir), "."))
	}
	return files
}
