// Apicheck keeps the exported surface of the library on record.
//
// It describes every public package of a module (every package that is not a
// command and not under internal/) as text, one file a package, and compares
// the text with the files in a directory. A difference is printed as a diff
// and makes the exit status 1: whoever changes the surface writes the change
// down with -w, and a reviewer sees it.
//
//	apicheck [-w] [-module dir] [-api dir]
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"golang.org/x/tools/go/packages"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program: it returns its exit status, which is 0 when the record
// holds or was written, 1 when it differs, and 2 when it could not be told.
func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("apicheck", flag.ContinueOnError)
	flags.SetOutput(stderr)
	write := flags.Bool("w", false, "write the record instead of checking it")
	module := flags.String("module", ".", "`directory` of the module to describe")
	dir := flags.String("api", "api", "`directory` of the record")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "apicheck: unexpected argument %q\n", flags.Arg(0))
		return 2
	}

	current, err := describe(*module)
	if err != nil {
		fmt.Fprintln(stderr, "apicheck:", err)
		return 2
	}
	recorded, err := readRecord(*dir)
	if err != nil {
		fmt.Fprintln(stderr, "apicheck:", err)
		return 2
	}
	if *write {
		if err := writeRecord(*dir, recorded, current); err != nil {
			fmt.Fprintln(stderr, "apicheck:", err)
			return 2
		}
		return 0
	}
	changed := compare(*dir, recorded, current, stdout)
	if len(changed) > 0 {
		fmt.Fprintf(stderr, "apicheck: the exported surface differs from %s in %s\n"+
			"apicheck: if that is meant, run make api and commit the result\n",
			*dir, strings.Join(changed, ", "))
		return 1
	}
	return 0
}

// A record holds the text of each package under the name of its file.
type record map[string][]byte

// describe gives the record of the module in dir as it is now. It is taken for
// one platform, so that it is the same wherever it is made.
func describe(dir string) (record, error) {
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedModule | packages.NeedFiles | packages.NeedImports |
			packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo,
		Dir: dir,
		Env: append(os.Environ(), "GOWORK=off", "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0"),
	}, "./...")
	if err != nil {
		return nil, err
	}
	r := record{}
	for _, pkg := range pkgs {
		if len(pkg.Errors) > 0 {
			return nil, fmt.Errorf("%s does not build: %s", pkg.PkgPath, pkg.Errors[0].Msg)
		}
		if pkg.Name == "main" || internal(pkg.PkgPath) {
			continue
		}
		r[fileName(pkg.Module.Path, pkg.PkgPath)] = surface(pkg.Types)
	}
	return r, nil
}

// internal reports whether users of the module cannot import the package.
func internal(pkgPath string) bool {
	return slices.Contains(strings.Split(pkgPath, "/"), "internal")
}

// fileName is the name of a package's file in the record: its path inside the
// module with dots for slashes, or the module's last element for its root.
func fileName(module, pkgPath string) string {
	name := strings.TrimPrefix(strings.TrimPrefix(pkgPath, module), "/")
	if name == "" {
		name = path.Base(module)
	}
	return strings.ReplaceAll(name, "/", ".") + ".txt"
}

// readRecord reads what is on record in dir, which need not exist.
func readRecord(dir string) (record, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	r := record{}
	for _, name := range names {
		if r[filepath.Base(name)], err = os.ReadFile(name); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// writeRecord makes dir hold current, and no file of a package that is gone.
func writeRecord(dir string, recorded, current record) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for name, text := range current {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			return err
		}
	}
	for name := range recorded {
		if _, ok := current[name]; ok {
			continue
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// compare prints a diff for each package that is not as recorded and returns
// their files, each with what happened to it.
func compare(dir string, recorded, current record, w io.Writer) (changed []string) {
	all := maps.Clone(recorded)
	maps.Copy(all, current)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		was, now := recorded[name], current[name]
		text := diff.Diff(path.Join(filepath.ToSlash(dir), name), was, name+" (now)", now)
		if len(text) == 0 {
			continue
		}
		w.Write(text)
		switch {
		case was == nil:
			name += " (new package)"
		case now == nil:
			name += " (package is gone)"
		}
		changed = append(changed, name)
	}
	return changed
}
