package draft

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
)

// ofMatrix is the place of a value in needs:parallel:matrix that each part of the job has for itself.
var ofMatrix = regexp.MustCompile(`\$\[\[\s*matrix\.([^\s\]]+)\s*\]\]`)

// ByPart reports whether each part of a job has the need for itself: one of $[[ matrix.NAME ]].
func (n Needed) ByPart() bool {
	return !n.ofPart && slices.ContainsFunc(n.Cells, func(c cell) bool {
		return slices.ContainsFunc(c, func(v pipeline.Variable) bool { return ofMatrix.MatchString(v.Value) })
	})
}

// OfMatrix reports whether the matrix of a job has a part that is needed, be it in the pipeline or not.
func (n Needed) OfMatrix(to *Draft) bool {
	return slices.ContainsFunc(to.Matrix, func(c cell) bool { return slices.ContainsFunc(n.Cells, c.Has) })
}

// For returns the need of one part of a job: $[[ matrix.NAME ]] is the value that the part has of NAME.
func (n Needed) For(part *pipeline.Job) (Needed, error) {
	var err error
	cells := make([]cell, len(n.Cells))
	for i, c := range n.Cells {
		cells[i] = slices.Clone(c)
		for k, v := range c {
			cells[i][k].Value = ofMatrix.ReplaceAllStringFunc(v.Value, func(place string) string {
				name := ofMatrix.FindStringSubmatch(place)[1]
				at := slices.IndexFunc(part.Cell, func(v pipeline.Variable) bool { return v.Name == name })
				if at < 0 {
					err = fmt.Errorf("%s needs %s: the matrix of the job has no %s", words.Quote(part.Name), place, words.Quote(name))
					return ""
				}
				return part.Cell[at].Value
			})
		}
	}
	n.Cells, n.ofPart = cells, true
	return n, err
}
