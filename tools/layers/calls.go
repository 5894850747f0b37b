package main

import (
	"fmt"
	"go/ast"
	"go/types"
)

// A callKind says how a call finds its function.
type callKind int

const (
	static      callKind = iota // the compiler knows it, or it is a conversion
	ofValue                     // a value of a function type: a field, a variable, a result
	ofInterface                 // a method of an interface
)

// kindOf tells how call finds its function.
func kindOf(call *ast.CallExpr, info *types.Info) callKind {
	if t := info.Types[call.Fun]; t.IsType() || t.IsBuiltin() {
		return static
	}
	switch used := callee(call.Fun, info).(type) {
	case *types.Func:
		if recv := used.Signature().Recv(); recv != nil && types.IsInterface(recv.Type()) {
			return ofInterface
		}
		return static
	default:
		if _, literal := ast.Unparen(call.Fun).(*ast.FuncLit); literal {
			return static
		}
		return ofValue
	}
}

// callee is the object that fun names, if it is a name.
func callee(fun ast.Expr, info *types.Info) types.Object {
	switch fun := ast.Unparen(fun).(type) {
	case *ast.Ident:
		return info.Uses[fun]
	case *ast.SelectorExpr:
		return info.Uses[fun.Sel]
	case *ast.IndexExpr:
		if t := info.Types[fun.Index]; t.IsType() {
			return callee(fun.X, info)
		}
	case *ast.IndexListExpr:
		return callee(fun.X, info)
	}
	return nil
}

// within reports whether call is made in one of blocks.
func (h *house) within(call *ast.CallExpr, blocks []block) bool {
	at := h.fset.Position(call.Lparen)
	for _, b := range blocks {
		after := at.Line > b.StartLine || at.Line == b.StartLine && at.Column >= b.StartCol
		before := at.Line < b.EndLine || at.Line == b.EndLine && at.Column < b.EndCol
		if after && before {
			return true
		}
	}
	return false
}

// place names where call is made, and what is called.
func (h *house) place(f *file, call *ast.CallExpr) string {
	return fmt.Sprintf("%s:%d %s", f.name, h.fset.Position(call.Lparen).Line, types.ExprString(call.Fun))
}
