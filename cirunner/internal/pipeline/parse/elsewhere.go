package parse

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
)

// Projects are where the files of other projects come from.
type Projects interface {
	// Checkout returns a work tree of a project: that of a branch, a tag or a commit.
	Checkout(project, ref string) (dir string, err error)

	// Version returns the ref that a version of a component means.
	Version(project, version string) (ref string, err error)
}

// remoteFile returns the copy of a file of the web. integrity is its hash, or null.
func (c *compiler) remoteFile(n, integrity *tree.Node) []inclusion {
	files := c.copied(n.At, "remote", remotePath(c.run.Expand(n.Text)))
	if integrity.Kind == tree.Null {
		return files
	}
	for _, f := range files {
		data, err := os.ReadFile(f.file)
		sum := sha256.Sum256(data)
		if has := "sha256-" + base64.StdEncoding.EncodeToString(sum[:]); err != nil || has != integrity.Text {
			c.Errorf(integrity.At, "include:integrity: the copy at %s is another file: it has %s", filepath.ToSlash(f.file), has)
			return nil
		}
	}
	return files
}

// projectFiles returns the files of another project that an entry of include names.
func (c *compiler) projectFiles(n, project *tree.Node) (files []inclusion) {
	if !n.Has("file") {
		c.Errorf(n.At, "include:project needs file, the files to include")
	}
	for _, name := range c.List("include:project", n.Field("file")) {
		files = append(files, c.projectFile(name, c.run.Expand(project.Text), c.run.Expand(n.Field("ref").Text))...)
	}
	return files
}

// projectFile returns a file of another project: a copy if there is one, else that of the
// git server.
func (c *compiler) projectFile(n *tree.Node, project, ref string) []inclusion {
	name := path.Join(project, c.run.Expand(n.Text))
	if c.options.Projects == nil || c.hasCopy(name) {
		return c.copied(n.At, "project", name)
	}
	return c.fetched(n, "project", project, ref, c.run.Expand(n.Text))
}

// component returns the file of a component: ADDRESS@VERSION, whose last part is the name.
func (c *compiler) component(n *tree.Node) []inclusion {
	address, version, _ := strings.Cut(c.run.Expand(n.Text), "@")
	_, inside, _ := strings.Cut(address, "/") // without the host
	project, name := path.Split(inside)
	project = strings.TrimSuffix(project, "/")
	var copies []string
	for _, root := range []string{path.Dir(address), project} {
		copies = append(copies, path.Join(root, "templates", name+".yml"), path.Join(root, "templates", name, "template.yml"))
	}
	for _, file := range copies {
		if c.hasCopy(file) {
			return c.copied(n.At, "component", file)
		}
	}
	if c.options.Projects == nil || c.hasCopy(address+".yml") {
		return c.copied(n.At, "component", address+".yml")
	}
	ref, err := c.options.Projects.Version(project, version)
	if err != nil {
		c.Errorf(n.At, "include:component: %v", err)
		return nil
	}
	return c.fetched(n, "component", project, ref, "templates/"+name+".yml", "templates/"+name+"/template.yml")
}

// artifact returns the file that a job has made for this pipeline.
func (c *compiler) artifact(n *tree.Node) []inclusion {
	job, name := n.Field("job").Text, n.Field("artifact").Text
	data, ok := c.family.made[madeKey(job, name)]
	if !ok {
		c.Errorf(n.At, "include:artifact is for trigger: a job of this pipeline starts the pipeline of the file that another has made")
		return nil
	}
	return []inclusion{{file: job + ":" + name, dir: cmp.Or(c.options.Dir, "."), data: append([]byte{}, data...)}}
}

// fetched returns the first of some files of another project that there is.
func (c *compiler) fetched(n *tree.Node, kind, project, ref string, names ...string) []inclusion {
	dir, err := c.options.Projects.Checkout(project, ref)
	if err != nil {
		c.Errorf(n.At, "include:%s: %v", kind, err)
		return nil
	}
	of := project
	if ref != "" {
		of += "@" + ref
	}
	for _, name := range names {
		file := filepath.Join(dir, filepath.FromSlash(path.Clean("/"+name)))
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return []inclusion{{file: file, dir: dir, of: of}}
		}
	}
	c.Errorf(n.At, "include:%s: %s has no file %s", kind, of, words.OneOf(names))
	return nil
}

// hasCopy reports whether there is a copy of a file that is not the project's.
func (c *compiler) hasCopy(name string) bool {
	if c.options.IncludeDir == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(c.options.IncludeDir, filepath.FromSlash(path.Clean("/"+name))))
	return err == nil
}

// remotePath is where the copy of a file of the web lies.
func remotePath(url string) string {
	_, after, _ := strings.Cut(url, "://")
	before, _, _ := strings.Cut(after, "?")
	return before
}

// copied returns the copy of a file that is not the project's.
func (c *compiler) copied(at tree.Mark, kind, name string) []inclusion {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	if c.options.IncludeDir == "" {
		c.Errorf(at, "include:%s takes a file from elsewhere, and nothing is fetched: "+
			"put a copy at DIR/%s and say -include-dir DIR%s", kind, name, gitAdvice(kind))
		return nil
	}
	file := filepath.Join(c.options.IncludeDir, filepath.FromSlash(name))
	if _, err := os.Stat(file); err != nil {
		c.Errorf(at, "include:%s: there is no copy at %s", kind, filepath.ToSlash(file))
		return nil
	}
	dir := c.options.IncludeDir
	if kind == "project" { // local includes of the copy are files of its project
		dir = strings.TrimSuffix(file, filepath.FromSlash(path.Join("/", c.withinProject(name))))
	}
	return []inclusion{{file: file, dir: dir}}
}

// withinProject returns what of the name of a copied file lies in its project.
func (c *compiler) withinProject(name string) string {
	parts := strings.Split(name, "/")
	for i := len(parts) - 1; i > 1; i-- { // the deepest directory with a file of that name is enough
		if _, err := os.Stat(filepath.Join(c.options.IncludeDir, filepath.Join(parts[:i]...), ".gitlab-ci.yml")); err == nil {
			return path.Join(parts[i:]...)
		}
	}
	return path.Join(parts[min(2, len(parts)-1):]...)
}

// gitAdvice says from where else a file may come.
func gitAdvice(kind string) string {
	if kind == "project" || kind == "component" {
		return ", or name the git server with -include-git"
	}
	return ""
}
