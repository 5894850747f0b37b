package parse

import (
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
func (p *compiler) remoteFile(n, integrity *tree.Node) []inclusion {
	files := p.copied(n.At, "remote", remotePath(p.run.Expand(n.Text)))
	if integrity.Kind == tree.Null {
		return files
	}
	for _, f := range files {
		data, err := os.ReadFile(f.file)
		sum := sha256.Sum256(data)
		if has := "sha256-" + base64.StdEncoding.EncodeToString(sum[:]); err != nil || has != integrity.Text {
			p.Errorf(integrity.At, "include:integrity: the copy at %s is another file: it has %s", filepath.ToSlash(f.file), has)
			return nil
		}
	}
	return files
}

// projectFile returns a file of another project: a copy if there is one, else that of the
// git server.
func (p *compiler) projectFile(n *tree.Node, project, ref string) []inclusion {
	name := path.Join(project, p.run.Expand(n.Text))
	if p.options.Projects == nil || p.hasCopy(name) {
		return p.copied(n.At, "project", name)
	}
	return p.fetched(n, "project", project, ref, p.run.Expand(n.Text))
}

// component returns the file of a component: ADDRESS@VERSION, whose last part is the name.
func (p *compiler) component(n *tree.Node) []inclusion {
	address, version, _ := strings.Cut(p.run.Expand(n.Text), "@")
	_, inside, _ := strings.Cut(address, "/") // without the host
	project, name := path.Split(inside)
	project = strings.TrimSuffix(project, "/")
	var copies []string
	for _, root := range []string{path.Dir(address), project} {
		copies = append(copies, path.Join(root, "templates", name+".yml"), path.Join(root, "templates", name, "template.yml"))
	}
	for _, file := range copies {
		if p.hasCopy(file) {
			return p.copied(n.At, "component", file)
		}
	}
	if p.options.Projects == nil || p.hasCopy(address+".yml") {
		return p.copied(n.At, "component", address+".yml")
	}
	ref, err := p.options.Projects.Version(project, version)
	if err != nil {
		p.Errorf(n.At, "include:component: %v", err)
		return nil
	}
	return p.fetched(n, "component", project, ref, "templates/"+name+".yml", "templates/"+name+"/template.yml")
}

// fetched returns the first of some files of another project that there is.
func (p *compiler) fetched(n *tree.Node, kind, project, ref string, names ...string) []inclusion {
	dir, err := p.options.Projects.Checkout(project, ref)
	if err != nil {
		p.Errorf(n.At, "include:%s: %v", kind, err)
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
	p.Errorf(n.At, "include:%s: %s has no file %s", kind, of, words.OneOf(names))
	return nil
}

// hasCopy reports whether there is a copy of a file that is not the project's.
func (p *compiler) hasCopy(name string) bool {
	if p.options.IncludeDir == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(p.options.IncludeDir, filepath.FromSlash(path.Clean("/"+name))))
	return err == nil
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
			"put a copy at DIR/%s and say -include-dir DIR%s", kind, name, gitAdvice(kind))
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
	return []inclusion{{file: file, dir: dir}}
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

// gitAdvice says from where else a file may come.
func gitAdvice(kind string) string {
	if kind == "project" || kind == "component" {
		return ", or name the git server with -include-git"
	}
	return ""
}
