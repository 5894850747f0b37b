//go:build unix

package runner

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/workdir"
)

// filesDir is a directory of the files that variables are in. The container of the job
// sees it.
func (a *attempt) filesDir() string { return filepath.Join(a.scriptsDir(), "files") }

// writeFiles writes the variables that are files, for nobody else to read. The user of a
// container may be any.
func (a *attempt) writeFiles() error {
	mode, dirMode := os.FileMode(0o600), os.FileMode(0o700)
	if a.inContainer() {
		mode, dirMode = 0o644, 0o755
	}
	for _, v := range a.job.Variables {
		if !v.File {
			continue
		}
		if err := os.MkdirAll(a.filesDir(), dirMode); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(a.filesDir(), v.Name), []byte(v.Value), mode); err != nil {
			return err
		}
	}
	return nil
}

func (a *attempt) removeFiles() { _ = workdir.RemoveAll(a.filesDir()) }

// inFiles returns variables with paths in the place of values that are in files.
func (a *attempt) inFiles(all []pipeline.Variable) []pipeline.Variable {
	all = slices.Clone(all)
	for i, v := range all {
		if v.File {
			all[i].Value = strings.ReplaceAll(filepath.Join(a.filesDir(), v.Name), "$", "$$")
			all[i].Raw = false
		}
	}
	return all
}

// fixed reports whether no report of a job changes a variable.
func (a *attempt) fixed(name string) bool {
	return slices.ContainsFunc(a.job.Variables, func(v pipeline.Variable) bool { return v.Name == name && v.Fixed })
}
