package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// A house is a package with the packages below it: all that is measured
// together. Its files are those of the default build, without tests.
type house struct {
	dir      string // absolute, of the package at the top
	fset     *token.FileSet
	packages []*packages.Package
	files    []*file          // sorted by name
	named    map[string]*file // by the name that positions have
}

// A file is a source file of a house.
type file struct {
	name   string // relative to the house, with slashes: internal/slots/queue.go
	pkg    *packages.Package
	syntax *ast.File
	text   []byte
}

// folder is that of f's package, relative to the house.
func (f *file) folder() string { return path.Dir(f.name) }

// counted reports whether f belongs to the structure: the package at the top
// and the internal ones. Other public packages below have a life of their own.
func (f *file) counted() bool {
	return f.folder() == "." || strings.Contains("/"+f.name, "/internal/")
}

// loadHouse reads and type-checks the packages in dir and below. The platform
// is fixed, so that the figures are the same wherever they are taken.
func loadHouse(dir string) (*house, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	h := &house{dir: abs, fset: token.NewFileSet(), named: map[string]*file{}}
	h.packages, err = packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedModule,
		Fset: h.fset,
		Dir:  abs,
		Env:  append(os.Environ(), "GOWORK=off", "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0"),
	}, "./...")
	if err != nil {
		return nil, err
	}
	for _, pkg := range h.packages {
		if len(pkg.Errors) > 0 {
			return nil, fmt.Errorf("%s does not build: %v", pkg.PkgPath, pkg.Errors[0])
		}
		if err := h.addFiles(pkg); err != nil {
			return nil, err
		}
	}
	if len(h.files) == 0 {
		return nil, fmt.Errorf("no Go files in %s", dir)
	}
	slices.SortFunc(h.files, func(a, b *file) int { return strings.Compare(a.name, b.name) })
	return h, nil
}

func (h *house) addFiles(pkg *packages.Package) error {
	for _, syntax := range pkg.Syntax {
		full := h.fset.File(syntax.FileStart).Name()
		name, err := filepath.Rel(h.dir, full)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(full)
		if err != nil {
			return err
		}
		f := &file{name: filepath.ToSlash(name), pkg: pkg, syntax: syntax, text: text}
		h.files = append(h.files, f)
		h.named[full] = f
	}
	return nil
}

// fileOf is the file in which pos stands, or nil if that is not of the house.
func (h *house) fileOf(pos token.Pos) *file {
	if f := h.fset.File(pos); f != nil {
		return h.named[f.Name()]
	}
	return nil
}

// structure is the files that belong to the structure.
func (h *house) structure() []*file {
	return slices.DeleteFunc(slices.Clone(h.files), func(f *file) bool { return !f.counted() })
}

// top is the package at the top.
func (h *house) top() *packages.Package {
	for _, f := range h.files {
		if f.folder() == "." {
			return f.pkg
		}
	}
	return nil
}
