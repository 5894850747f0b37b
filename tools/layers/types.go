package main

import (
	"cmp"
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// A methodSet says how many methods a type declares, and in how many files.
type methodSet struct {
	Type    string `json:"type"`
	Methods int    `json:"methods"`
	Files   int    `json:"files"`
}

// methods lists the types that declare methods, those with the most first.
func methods(h *house) []methodSet {
	count := map[string]int{}
	in := map[string]map[string]bool{}
	for _, f := range h.structure() {
		for _, decl := range f.syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv == nil {
				continue
			}
			name := qualified(f, receiver(fn))
			count[name]++
			if in[name] == nil {
				in[name] = map[string]bool{}
			}
			in[name][f.name] = true
		}
	}
	var list []methodSet
	for name, n := range count {
		list = append(list, methodSet{name, n, len(in[name])})
	}
	slices.SortFunc(list, func(a, b methodSet) int {
		return cmp.Or(cmp.Compare(b.Methods, a.Methods), cmp.Compare(b.Files, a.Files), strings.Compare(a.Type, b.Type))
	})
	return list
}

// qualified is the name of a type of f, with the folder unless that is the top.
func qualified(f *file, name string) string {
	if f.folder() == "." {
		return name
	}
	return f.folder() + "." + name
}

// exported lists the exported names of pkg, and those of them that are types
// of options.
func exported(pkg *types.Package) (names, options []string) {
	for _, name := range pkg.Scope().Names() {
		object := pkg.Scope().Lookup(name)
		if !object.Exported() {
			continue
		}
		names = append(names, name)
		if _, ok := object.(*types.TypeName); ok && strings.HasSuffix(name, "Option") {
			options = append(options, name)
		}
	}
	return names, options
}
