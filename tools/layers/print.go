package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// listed is how many methods of types are printed unless all lists are.
const listed = 5

// print writes the figures as text: structure first, then sizes; all says
// whether the lists of what was counted follow.
func (f *figures) print(w io.Writer, all bool) {
	f.printPackages(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	f.printStructure(t)
	f.printSizes(t)
	f.printExecuted(t)
	t.Flush()
	if all {
		f.printLists(w)
	}
}

// printPackages writes a table with a line for each package.
func (f *figures) printPackages(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "lines of code\tsources\ttests\tfiles\treferences\tpairs\tknot\t  package")
	for _, p := range append(f.Packages, f.Sum) {
		if p.Beside {
			fmt.Fprintf(t, "%d\t%d\t%d\t\t\t\t\t  %s (beside)\n", p.Code, p.Sources, p.Tests, p.Folder)
			continue
		}
		fmt.Fprintf(t, "%d\t%d\t%d\t%d\t%d\t%d\t%d\t  %s\n",
			p.Code, p.Sources, p.Tests, p.Files, p.References, p.Pairs, p.Knot, p.Folder)
	}
	t.Flush()
	fmt.Fprintln(w)
}

func (f *figures) printStructure(w io.Writer) {
	references := f.Sum.References + f.Between
	if f.Laid {
		fmt.Fprintf(w, "references that run up\t%d of %d\n", len(f.Up), references)
	}
	where := ""
	if len(f.Knots) > 0 {
		where = ", in " + parent(f.Knots[0][0])
	}
	fmt.Fprintf(w, "files of the largest knot\t%d of %d%s\n", f.Sum.Knot, f.Sum.Files, where)
	fmt.Fprintf(w, "pairs of files that refer to each other\t%d\n", f.Sum.Pairs)
	fmt.Fprintf(w, "references between packages\t%d\n", f.Between)
	for i, m := range f.Methods {
		if i < listed {
			fmt.Fprintf(w, "methods of %s\t%d in %d files\n", m.Type, m.Methods, m.Files)
		}
	}
}

func (f *figures) printSizes(w io.Writer) {
	fmt.Fprintf(w, "exported names\t%d\n", len(f.Exported))
	fmt.Fprintf(w, "types of options\t%d: %s\n", len(f.Options), strings.Join(f.Options, " "))
	fmt.Fprintf(w, "median length of a function\t%g lines\n", f.MedianFunction)
	for _, l := range f.longLists() {
		fmt.Fprintf(w, "%s\t%d\n", l.title, len(l.list))
	}
}

// A longList is a list of what is too long, under a title.
type longList struct {
	title string
	list  []long
}

func (f *figures) longLists() []longList {
	return []longList{
		{fmt.Sprintf("functions over %d lines", longFunction), f.LongFunctions},
		{fmt.Sprintf("files over %d lines", longFile), f.LongFiles},
		{fmt.Sprintf("test files over %d lines", longTest), f.LongTests},
		{fmt.Sprintf("lines of code over %d columns", longLine), f.LongLines},
		{fmt.Sprintf("lines of tests over %d columns", longLine), f.LongTestLines},
	}
}

// printLists writes what was counted.
func (f *figures) printLists(w io.Writer) {
	if f.Laid {
		fmt.Fprintln(w, "\nreferences that run up:")
	}
	for _, r := range f.Up {
		fmt.Fprintf(w, "\t%s -> %s: %s\n", r.From, r.To, strings.Join(r.Names, " "))
	}
	for _, knot := range f.Knots {
		fmt.Fprintf(w, "\nknot of %d files:\n\t%s\n", len(knot), strings.Join(knot, " "))
	}
	fmt.Fprintln(w, "\npairs of files that refer to each other:")
	for _, pair := range f.Pairs {
		fmt.Fprintf(w, "\t%s %s\n", pair[0], pair[1])
	}
	for _, p := range f.Played {
		fmt.Fprintf(w, "\nexecuted in scene %s:\n\t%s\n", p.Scene, strings.Join(p.Functions, "\n\t"))
	}
	f.printPath(w)
	for _, l := range f.longLists() {
		if len(l.list) > 0 {
			fmt.Fprintf(w, "\n%s:\n", l.title)
		}
		for _, long := range l.list {
			fmt.Fprintf(w, "\t%s: %d\n", long.Name, long.Size)
		}
	}
}

// printExecuted writes how much is executed, if scenes were played.
func (f *figures) printExecuted(w io.Writer) {
	for _, p := range f.Played {
		p.print(w, "executed in scene "+p.Scene)
	}
	p := f.FailurePath
	if p == nil {
		return
	}
	p.All.print(w, "executed from a failure to Scope's return")
	p.Because.print(w, "    and not after a success")
	p.Carry.print(w, "    and with an error in a parameter or a result")
	fmt.Fprintf(w, "    calls of function values\t%d, of methods of interfaces %d\n", len(p.Values), len(p.Interfaces))
}

func (p *played) print(w io.Writer, title string) {
	fmt.Fprintf(w, "%s\t%d functions in %d files", title, len(p.Functions), p.Files)
	if len(p.Sometimes) > 0 {
		fmt.Fprintf(w, "; in some rounds %s", strings.Join(p.Sometimes, ", "))
	}
	fmt.Fprintln(w)
}

// printPath lists what is executed from a failure to Scope's return.
func (f *figures) printPath(w io.Writer) {
	p := f.FailurePath
	if p == nil {
		return
	}
	fmt.Fprintln(w, "\nexecuted from a failure to Scope's return (! not after a success, * an error in a parameter or a result):")
	for _, name := range p.All.Functions {
		marks := ""
		if slices.Contains(p.Because.Functions, name) {
			marks += " !"
		}
		if slices.Contains(p.Carry.Functions, name) {
			marks += " *"
		}
		fmt.Fprintf(w, "\t%s%s\n", name, marks)
	}
	fmt.Fprintf(w, "\nits calls of function values:\n\t%s\n", strings.Join(p.Values, "\n\t"))
	fmt.Fprintf(w, "\nits calls of methods of interfaces:\n\t%s\n", strings.Join(p.Interfaces, "\n\t"))
}

// parent is the package of a file, as printed.
func parent(file string) string {
	if i := strings.LastIndexByte(file, '/'); i >= 0 {
		return file[:i]
	}
	return "the package at the top"
}
