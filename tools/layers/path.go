package main

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// A failurePath is what is executed from the return statement of a task that
// fails to the return of its scope.
type failurePath struct {
	All     *played `json:"all"`
	Because *played `json:"because"` // what is not executed if the task succeeds
	Carry   *played `json:"carry"`   // what has an error in a parameter or a result

	Values     []string `json:"values"`     // calls of function values
	Interfaces []string `json:"interfaces"` // calls of methods of interfaces
}

// newFailurePath compares what a failure and a success execute.
func newFailurePath(h *house, failure, success *played) *failurePath {
	if failure == nil || success == nil {
		return nil
	}
	p := &failurePath{All: failure}
	carriers := carriers(h)
	var because, carry []string
	for _, f := range failure.Functions {
		if !slices.Contains(success.Functions, f) && !slices.Contains(success.Sometimes, f) {
			because = append(because, f)
		}
		if carriers[f] {
			carry = append(carry, f)
		}
	}
	p.Because, p.Carry = newPlayed("because", because), newPlayed("carry", carry)
	p.Values, p.Interfaces = dynamicCalls(h, failure.blocks)
	return p
}

// fileOfFunction is the file in the name of a function.
func fileOfFunction(name string) string {
	file, _, _ := strings.Cut(name, " ")
	return file
}

// carriers are the functions that have an error in a parameter or a result.
func carriers(h *house) map[string]bool {
	all := map[string]bool{}
	for _, f := range h.structure() {
		for _, decl := range f.syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			signature := f.pkg.TypesInfo.Defs[fn.Name].Type().(*types.Signature)
			all[f.name+" "+functionName(fn)] = h.hasError(signature.Params()) || h.hasError(signature.Results())
		}
	}
	return all
}

func (h *house) hasError(values *types.Tuple) bool {
	for v := range values.Variables() {
		if h.holdsError(v.Type(), true) {
			return true
		}
	}
	return false
}

var errorType = types.Universe.Lookup("error").Type().Underlying().(*types.Interface)

// holdsError reports whether t is an error, or a slice, or a struct of the
// house, or a pointer to them, with an error in it; fields says whether to look
// into structs: it is done once.
func (h *house) holdsError(t types.Type, fields bool) bool {
	t = types.Unalias(t)
	if named, ok := t.(*types.Named); ok {
		if types.Identical(named.Underlying(), errorType) {
			return true
		}
		if h.fileOf(named.Obj().Pos()) == nil {
			return false
		}
		if types.Implements(named, errorType) || types.Implements(types.NewPointer(named), errorType) {
			return true
		}
	}
	switch t := t.Underlying().(type) {
	case *types.Pointer:
		return h.holdsError(t.Elem(), fields)
	case *types.Slice:
		return h.holdsError(t.Elem(), fields)
	case *types.Struct:
		for field := range t.Fields() {
			if fields && h.holdsError(field.Type(), false) {
				return true
			}
		}
	}
	return false
}

// dynamicCalls lists the calls in blocks whose function is not known before the
// program runs: of function values, and of methods of interfaces.
func dynamicCalls(h *house, blocks map[block]bool) (values, interfaces []string) {
	executed := map[*file][]block{}
	for b, always := range blocks {
		if always {
			executed[b.file] = append(executed[b.file], b)
		}
	}
	for _, f := range h.structure() {
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !h.within(call, executed[f]) {
				return true
			}
			at := h.place(f, call)
			switch kindOf(call, f.pkg.TypesInfo) {
			case ofValue:
				values = append(values, at)
			case ofInterface:
				interfaces = append(interfaces, at)
			}
			return true
		})
	}
	return values, interfaces
}
