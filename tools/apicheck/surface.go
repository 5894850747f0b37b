package main

import (
	"bytes"
	"fmt"
	"go/types"
	"maps"
	"slices"
	"strings"
)

// surface describes what users of pkg can see and depend on: constants with
// their values, variables, functions, and types with their exported fields
// and methods, promoted ones included. One declaration a line, in a fixed
// order, as near to Go as one line allows; no doc comments, no bodies.
//
// A type that is not exported belongs to the surface when an exported
// declaration mentions it, and so does the inside of an internal type that a
// public name stands for.
func surface(pkg *types.Package) []byte {
	p := &printer{pkg: pkg, imports: map[string]bool{}, seen: map[*types.TypeName]bool{}}
	var consts, vars, funcs, named []types.Object
	for _, name := range pkg.Scope().Names() {
		obj := pkg.Scope().Lookup(name)
		if !obj.Exported() {
			continue
		}
		switch obj.(type) {
		case *types.Const:
			consts = append(consts, obj)
		case *types.Var:
			vars = append(vars, obj)
		case *types.Func:
			funcs = append(funcs, obj)
		case *types.TypeName:
			named = append(named, obj)
		}
	}
	for _, group := range [][]types.Object{consts, vars, funcs} {
		p.gap()
		for _, obj := range group {
			p.value(obj)
		}
	}
	for _, obj := range named {
		p.gap()
		p.typeName(obj.(*types.TypeName))
	}
	p.hidden()
	return append(p.header(), p.body.Bytes()...)
}

// A printer writes the surface of one package.
type printer struct {
	pkg     *types.Package
	body    bytes.Buffer
	imports map[string]bool          // paths of the packages mentioned
	seen    map[*types.TypeName]bool // types that need no further mention
	queue   []*types.TypeName        // unexported types mentioned, not yet described
}

func (p *printer) line(format string, args ...any) {
	fmt.Fprintf(&p.body, format+"\n", args...)
}

// gap separates what follows from what stands before it.
func (p *printer) gap() {
	if b := p.body.Bytes(); len(b) > 0 && !bytes.HasSuffix(b, []byte("\n\n")) {
		p.body.WriteByte('\n')
	}
}

// header names the package and everything that the text mentions from others,
// so that the short names in it are no riddle.
func (p *printer) header() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "package %s // import %q\n", p.pkg.Name(), p.pkg.Path())
	for _, path := range slices.Sorted(maps.Keys(p.imports)) {
		fmt.Fprintf(&b, "import %q\n", path)
	}
	if p.body.Len() > 0 {
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// text writes t as Go does, and notes what it mentions.
func (p *printer) text(t types.Type) string {
	p.mention(t)
	return types.TypeString(t, p.qualify)
}

func (p *printer) qualify(other *types.Package) string {
	if other == p.pkg {
		return ""
	}
	p.imports[other.Path()] = true
	return other.Name()
}

// value writes a constant, a variable or a function.
func (p *printer) value(obj types.Object) {
	switch obj := obj.(type) {
	case *types.Const:
		p.line("const %s %s = %s", obj.Name(), p.text(obj.Type()), obj.Val().ExactString())
	case *types.Var:
		p.line("var %s %s", obj.Name(), p.text(obj.Type()))
	case *types.Func:
		p.line("func %s%s", obj.Name(), p.signature(obj.Type()))
	}
}

// signature is the type of a function without the word func.
func (p *printer) signature(t types.Type) string {
	return strings.TrimPrefix(p.text(t), "func")
}

// typeName writes a type declaration with all that belongs to it.
func (p *printer) typeName(obj *types.TypeName) {
	if obj.IsAlias() {
		p.alias(obj)
		return
	}
	t := obj.Type().(*types.Named)
	p.define(obj.Name()+p.params(t.TypeParams()), t, "")
	p.methods(t)
}

// alias writes an alias. The type that it stands for is described with it when users
// have no other name for it.
func (p *printer) alias(obj *types.TypeName) {
	name, right := obj.Name(), types.Unalias(obj.Type())
	if a, ok := obj.Type().(*types.Alias); ok {
		name += p.params(a.TypeParams())
		right = a.Rhs()
	}
	target, ok := types.Unalias(right).(*types.Named)
	if !ok || target.Obj().Pkg() == nil || (target.Obj().Exported() && !internal(target.Obj().Pkg().Path())) {
		p.line("type %s = %s", name, p.text(right))
		return
	}
	p.seen[target.Obj()] = true
	p.define(name, target, "= "+p.text(right)+" ")
	p.methods(target)
}

// params writes type parameters with their constraints.
func (p *printer) params(list *types.TypeParamList) string {
	if list.Len() == 0 {
		return ""
	}
	var params []string
	for param := range list.TypeParams() {
		params = append(params, param.Obj().Name()+" "+p.text(param.Constraint()))
	}
	return "[" + strings.Join(params, ", ") + "]"
}

// define writes the declaration of t under the given name.
func (p *printer) define(name string, t *types.Named, equals string) {
	switch u := t.Underlying().(type) {
	case *types.Struct:
		p.line("type %s %sstruct {%s", name, equals, comparison(t))
		p.fields(u)
		p.line("}")
	case *types.Interface:
		p.line("type %s %sinterface {", name, equals)
		p.elements(u)
		p.line("}")
	default:
		p.line("type %s %s%s", name, equals, p.text(u))
	}
}

// comparison notes what a field that nobody sees can take away from a struct.
func comparison(t *types.Named) string {
	if t.TypeParams().Len() > 0 || types.Comparable(t) {
		return ""
	}
	return " // not comparable"
}

// fields writes the exported fields of a struct in their order, with those
// that embedded types without an exported name contribute.
func (p *printer) fields(s *types.Struct) {
	hidden := false
	for i := range s.NumFields() {
		f := s.Field(i)
		switch {
		case !f.Exported():
			hidden = true
		case f.Embedded():
			p.line("\t%s%s", p.text(f.Type()), tag(s.Tag(i)))
		default:
			p.line("\t%s %s%s", f.Name(), p.text(f.Type()), tag(s.Tag(i)))
		}
	}
	for _, f := range promoted(s, p.pkg) {
		p.line("\t%s %s // promoted", f.Name(), p.text(f.Type()))
	}
	if hidden {
		p.line("\t// and unexported fields")
	}
}

func tag(tag string) string {
	if tag == "" {
		return ""
	}
	return fmt.Sprintf(" %q", tag)
}

// promoted gives the exported fields that can be selected in s because an
// unexported type is embedded in it, at whatever depth.
func promoted(s *types.Struct, pkg *types.Package) []*types.Var {
	fields := map[string]*types.Var{}
	var collect func(inner *types.Struct, seen []*types.Struct)
	collect = func(inner *types.Struct, seen []*types.Struct) {
		if slices.Contains(seen, inner) {
			return
		}
		for f := range inner.Fields() {
			if f.Exported() && inner != s {
				// Selected is only what neither another field nor a method hides.
				if obj, _, _ := types.LookupFieldOrMethod(s, true, pkg, f.Name()); obj == f {
					fields[f.Name()] = f
				}
			}
			if !f.Embedded() || f.Exported() {
				continue
			}
			if embedded, ok := deref(f.Type()).Underlying().(*types.Struct); ok {
				collect(embedded, append(seen, inner))
			}
		}
	}
	collect(s, nil)
	var list []*types.Var
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		list = append(list, fields[name])
	}
	return list
}

func deref(t types.Type) types.Type {
	if ptr, ok := types.Unalias(t).(*types.Pointer); ok {
		return ptr.Elem()
	}
	return t
}

// elements writes what stands in an interface: what it embeds, all exported
// methods that it has in the end, and whether others can implement it.
func (p *printer) elements(t *types.Interface) {
	for embedded := range t.EmbeddedTypes() {
		if name, ok := embedded.(*types.Named); ok && name.Obj().Pkg() == p.pkg && !name.Obj().Exported() {
			continue // its methods are listed below
		}
		p.line("\t%s", p.text(embedded))
	}
	hidden := false
	for m := range t.Methods() {
		if m.Exported() {
			p.line("\t%s%s", m.Name(), p.signature(m.Type()))
		}
		hidden = hidden || !m.Exported()
	}
	if hidden {
		p.line("\t// and unexported methods")
	}
}

// methods writes the methods of a type that is not an interface: those that
// values have with the plain receiver, those that only pointers have with *.
func (p *printer) methods(t *types.Named) {
	if types.IsInterface(t) {
		return
	}
	values := types.NewMethodSet(t)
	for sel := range types.NewMethodSet(types.NewPointer(t)).Methods() {
		m := sel.Obj()
		if !m.Exported() {
			continue
		}
		star := "*"
		if values.Lookup(m.Pkg(), m.Name()) != nil {
			star = ""
		}
		p.line("func (%s%s) %s%s", star, receiver(t), m.Name(), p.signature(sel.Type()))
	}
	p.sealed(t)
}

// sealed writes which interfaces of the package t satisfies by methods that
// the text does not show. An option, say, can be passed only where it does.
func (p *printer) sealed(t *types.Named) {
	for _, name := range p.pkg.Scope().Names() {
		obj, ok := p.pkg.Scope().Lookup(name).(*types.TypeName)
		if !ok || !obj.Exported() || obj.IsAlias() || t.TypeParams().Len() > 0 {
			continue
		}
		named := obj.Type().(*types.Named)
		face, ok := named.Underlying().(*types.Interface)
		if !ok || named.TypeParams().Len() > 0 || !slices.ContainsFunc(slices.Collect(face.Methods()), unexported) {
			continue
		}
		switch {
		case types.Implements(t, face):
			p.line("// %s implements %s", t.Obj().Name(), name)
		case types.Implements(types.NewPointer(t), face):
			p.line("// *%s implements %s", t.Obj().Name(), name)
		}
	}
}

func unexported(m *types.Func) bool { return !m.Exported() }

// receiver names t with its type parameters, if any.
func receiver(t *types.Named) string {
	var params []string
	for param := range t.TypeParams().TypeParams() {
		params = append(params, param.Obj().Name())
	}
	if len(params) == 0 {
		return t.Obj().Name()
	}
	return t.Obj().Name() + "[" + strings.Join(params, ", ") + "]"
}

// hidden writes the unexported types that the text so far mentions: users
// hold values of them, and call their methods, without the name.
func (p *printer) hidden() {
	for len(p.queue) > 0 {
		batch := p.queue
		p.queue = nil
		slices.SortFunc(batch, func(a, b *types.TypeName) int { return strings.Compare(a.Name(), b.Name()) })
		for _, obj := range batch {
			p.gap()
			p.line("// unexported, but mentioned above:")
			p.typeName(obj)
		}
	}
}

// mention queues the unexported types of the package that t is made of.
func (p *printer) mention(t types.Type) {
	switch t := t.(type) {
	case *types.Alias:
		p.mentionName(t.Obj())
		p.mentionArgs(t.TypeArgs())
	case *types.Named:
		p.mentionName(t.Obj())
		p.mentionArgs(t.TypeArgs())
	case *types.Map:
		p.mention(t.Key())
		p.mention(t.Elem())
	case interface{ Elem() types.Type }: // pointer, slice, array, channel
		p.mention(t.Elem())
	case *types.Signature:
		for param := range t.TypeParams().TypeParams() {
			p.mention(param.Constraint())
		}
		for v := range t.Params().Variables() {
			p.mention(v.Type())
		}
		for v := range t.Results().Variables() {
			p.mention(v.Type())
		}
	case *types.Struct:
		for f := range t.Fields() {
			p.mention(f.Type())
		}
	case *types.Union:
		for term := range t.Terms() {
			p.mention(term.Type())
		}
	case *types.Interface:
		for embedded := range t.EmbeddedTypes() {
			p.mention(embedded)
		}
		for m := range t.ExplicitMethods() {
			p.mention(m.Type())
		}
	}
}

func (p *printer) mentionName(obj *types.TypeName) {
	if obj.Pkg() != p.pkg || obj.Exported() || obj.Parent() != p.pkg.Scope() || p.seen[obj] {
		return
	}
	p.seen[obj] = true
	p.queue = append(p.queue, obj)
}

func (p *printer) mentionArgs(list *types.TypeList) {
	for arg := range list.Types() {
		p.mention(arg)
	}
}
