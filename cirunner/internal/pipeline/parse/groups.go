package parse

import (
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
)

// A taking is that a job takes a resource group while one that starts its pipeline has another.
type taking struct{ holder, job *pipeline.Job }

// checkGroups reports resource groups that pipelines take in opposite orders: two jobs that have one each and wait
// for that of the other wait for ever. In one run that is an error, unless the jobs never run at once; two runs may
// do so all the same. Names that hold variables are not known yet: the run fails if it comes to that.
func (c *compiler) checkGroups(p *pipeline.Pipeline) {
	takings := make(map[[2]string][]taking)
	var order [][2]string
	for _, j := range p.Jobs {
		for _, t := range takingsOf(j) {
			key := [2]string{t.holder.ResourceGroup, j.ResourceGroup}
			if takings[key] == nil {
				order = append(order, key)
			}
			takings[key] = append(takings[key], t)
		}
	}
	for _, key := range order {
		for _, a := range takings[key] {
			for _, b := range takings[[2]string{key[1], key[0]}] {
				if a.holder.Index < b.holder.Index {
					c.opposite(a, b)
				}
			}
		}
	}
}

// opposite reports two jobs that take two groups in opposite orders.
func (c *compiler) opposite(a, b taking) {
	at := tree.Mark{}
	for top := b.holder; top != nil; top = top.Parent {
		if t := c.starts[top]; t != nil {
			at = t.At
		}
	}
	const text = "%s has the resource_group %s while its pipeline wants %s for %s, and %s has %[3]s while its pipeline wants %[2]s for %[6]s"
	args := []any{
		words.Quote(a.holder.Name), a.holder.ResourceGroup, a.job.ResourceGroup, words.Quote(a.job.Name),
		words.Quote(b.holder.Name), words.Quote(b.job.Name),
	}
	if waits(a.holder, b.holder) || waits(b.holder, a.holder) {
		c.Warn(at, "resource_group", "two runs at once may wait for each other for ever: "+text, args...)
		return
	}
	c.Errorf(at, "these may wait for each other for ever: "+text, args...)
}

// takingsOf returns the groups that a job takes beside those which are taken for its pipeline.
func takingsOf(j *pipeline.Job) (all []taking) {
	if !isFixed(j.ResourceGroup) {
		return nil
	}
	for parent := j.Parent; parent != nil; parent = parent.Parent {
		switch {
		case !parent.Depend || !isFixed(parent.ResourceGroup):
		case parent.ResourceGroup == j.ResourceGroup:
			return nil // it has it
		default:
			all = append(all, taking{parent, j})
		}
	}
	return all
}

// isFixed reports whether a name is that of a group, and holds no variable.
func isFixed(group string) bool { return group != "" && !strings.Contains(group, "$") }

// waits reports whether a job waits for another, or for one that does.
func waits(j, other *pipeline.Job) bool {
	seen := make(map[*pipeline.Job]bool)
	var look func(*pipeline.Job) bool
	look = func(j *pipeline.Job) bool {
		for _, before := range j.WaitsFor {
			if before == other {
				return true
			}
			if !seen[before] {
				seen[before] = true
				if look(before) {
					return true
				}
			}
		}
		return false
	}
	return look(j)
}
