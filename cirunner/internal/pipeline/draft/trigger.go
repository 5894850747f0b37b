package draft

import (
	"slices"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
)

// A Trigger is a child pipeline that a job starts.
type Trigger struct {
	Include *tree.Node // as at the top of a file
	Inputs  *tree.Node // of what is included; null without
	Made    []Made     // the files that jobs make, of those to include
	At      tree.Mark

	// Depend says that the job is as its pipeline is. YAML and Pipeline say which variables
	// the pipeline gets: those of the job, and those of the command line.
	Depend, YAML, Pipeline bool
}

// A Made is a file that a job leaves among its artifacts, for a child pipeline.
type Made struct {
	Job, Path string
	At        tree.Mark
}

// besideTrigger are the keywords of a job that starts a pipeline, as in GitLab. The others are for a script.
var besideTrigger = []string{
	"trigger", "stage", "needs", "variables", "inherit", "rules", "only", "except", "when", "allow_failure", "parallel",
	"resource_group", "interruptible", "environment", "manual_confirmation",
}

// checkTrigger reports keywords that cannot stand beside trigger.
func (p *Parser) checkTrigger(d *Draft, job *tree.Node) {
	for _, f := range job.Fields {
		switch {
		case f.Value.Kind == tree.Null || !isOfJobs(f.Key) || slices.Contains(besideTrigger, f.Key):
		case f.Key == "script":
			p.Errorf(job.KeyAt("trigger"), "trigger cannot be used together with script: a job does one or the other")
		default:
			p.Errorf(f.At, "%s cannot be used together with trigger: nothing of the job is run but its pipeline", f.Key)
		}
	}
	if d.When == pipeline.Delayed {
		p.Errorf(job.KeyAt("when"), "when: delayed cannot be used together with trigger: put it into a rule")
	}
}

// isOfJobs reports whether a keyword is one of jobs, and not an error by itself.
func isOfJobs(key string) bool {
	_, read := JobKeywords[key]
	_, ignored := IgnoredInJobs[key]
	return read || ignored
}

const noPipeline = "no pipeline of another project is started, and the job does nothing: run cirunner there"

func (t *Trigger) script() string {
	if t == nil {
		return "echo 'no other pipeline is started here'"
	}
	return "echo 'a child pipeline starts'"
}

// readTrigger reads which pipeline a job starts.
func readTrigger(p *Parser, d *Draft, n *tree.Node) {
	d.triggers = true
	if n.Kind != tree.Mapping {
		p.String("trigger", n)
		p.Ignore(n.At, "trigger", noPipeline)
		return
	}
	t := &Trigger{At: n.At, YAML: true, Include: &tree.Node{}, Inputs: &tree.Node{Kind: tree.Null}}
	ok := p.Fields("trigger", n, tree.Keys{
		"include": func(n *tree.Node) { t.Include = n; t.Made = p.made(n); p.checkFiles(n) },
		"inputs":  func(n *tree.Node) { t.Inputs = n; p.IsMapping("trigger:inputs", n) },
		"strategy": func(n *tree.Node) {
			_, ok := tree.Choice(p.Reader, "trigger:strategy", n, "depend", "mirror")
			t.Depend = ok
		},
		"forward": func(n *tree.Node) {
			p.Fields("trigger:forward", n, tree.Keys{
				"yaml_variables":     func(n *tree.Node) { t.YAML, _ = p.Boolean("trigger:forward:yaml_variables", n) },
				"pipeline_variables": func(n *tree.Node) { t.Pipeline, _ = p.Boolean("trigger:forward:pipeline_variables", n) },
			}, nil)
		},
		"project": func(*tree.Node) {},
		"branch":  func(*tree.Node) {},
	}, nil)
	switch {
	case !ok:
	case n.Has("project") && n.Has("include"):
		p.Errorf(n.At, "trigger:include and trigger:project are of different pipelines: keep one")
	case n.Has("project"):
		p.Ignore(n.At, "trigger", noPipeline)
	case n.Has("branch"):
		p.Errorf(n.KeyAt("branch"), "trigger:branch is for project")
	case !n.Has("include"):
		p.Errorf(n.At, "trigger should have include, the files of the pipeline, or project")
	default:
		d.Trigger = t
	}
}

// maxFiles is how many files a child pipeline may be of, as in GitLab.
const maxFiles = 3

func (p *Parser) checkFiles(n *tree.Node) {
	if len(n.Items) > maxFiles {
		p.Errorf(n.At, "trigger:include has %d files: it may have %d", len(n.Items), maxFiles)
	}
}

// made returns the files among those to include that are artifacts of jobs.
func (p *Parser) made(n *tree.Node) (all []Made) {
	items := []*tree.Node{n}
	if n.Kind == tree.List {
		items = n.Items
	}
	for _, item := range items {
		if !item.Has("artifact") {
			continue
		}
		m := Made{At: item.At}
		if !item.Has("job") {
			p.Errorf(item.At, "trigger:include:artifact needs job, the one that makes the file")
			continue
		}
		if item.Has("rules") {
			p.Errorf(item.KeyAt("rules"), "rules are not for an artifact, which is there only when jobs have run: put them into the job that has the trigger")
			continue
		}
		path, ok := p.String("trigger:include:artifact", item.Field("artifact"))
		job, ok2 := p.String("trigger:include:job", item.Field("job"))
		if m.Path, m.Job = path, job; ok && ok2 {
			all = append(all, m)
		}
	}
	return all
}
