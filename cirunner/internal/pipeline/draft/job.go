package draft

import (
	"regexp"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
	"github.com/ambit-go/ambit/cirunner/internal/vars"
)

// A Draft is a job as the file has it: its parts are not taken apart, and other
// jobs are names.
type Draft struct {
	pipeline.Job // what all parts have in common

	StageAt    tree.Mark
	At         tree.Mark
	count      int      // of parallel: n; 0 without
	Matrix     []cell   // of parallel:matrix
	Named      []Needed // of needs
	HasNeeds   bool
	NoNeeds    bool         // needs: []
	Depends    []*tree.Node // of dependencies
	HasDepends bool
	variables  []pipeline.Variable // of the job alone
	inherit    inheritance

	Rules        []Rule
	HasRules     bool
	Only, Except *Policy
	triggers     bool     // it starts another pipeline
	mirrors      bool     // it tells how another pipeline has ended
	Trigger      *Trigger // one of files that can be read; nil without

	// A keyword was reported that might have been the script.
	scriptSeen bool
}

// A jobKeyword reads one keyword of a job. One that may be in default is read
// from there when a job does not have it.
type jobKeyword struct {
	InDefault bool
	read      func(p *Parser, d *Draft, n *tree.Node)
}

// jobKeywords are all of them; the names are in alphabetical order. They are set
// by init, because their readers use them in turn.
var (
	JobKeywords                 map[string]jobKeyword
	namesInJobs, namesInDefault []string
)

func init() {
	JobKeywords = map[string]jobKeyword{
		"stage":          {false, readStage},
		"before_script":  {true, func(p *Parser, d *Draft, n *tree.Node) { d.Before = p.script("before_script", n) }},
		"script":         {false, readScript},
		"after_script":   {true, func(p *Parser, d *Draft, n *tree.Node) { d.After = p.script("after_script", n) }},
		"variables":      {false, func(p *Parser, d *Draft, n *tree.Node) { d.variables = p.variables(n, false) }},
		"needs":          {false, readNeeds},
		"dependencies":   {false, readDependencies},
		"parallel":       {false, readParallel},
		"timeout":        {true, readTimeout},
		"retry":          {true, readRetry},
		"allow_failure":  {false, readAllowFailure},
		"when":           {false, readWhen},
		"start_in":       {false, func(p *Parser, d *Draft, n *tree.Node) { d.StartIn, _ = p.Duration("start_in", n, tree.MaxTimeout) }},
		"interruptible":  {true, func(p *Parser, d *Draft, n *tree.Node) { d.Interruptible, _ = p.Boolean("interruptible", n) }},
		"artifacts":      {true, readArtifacts},
		"resource_group": {false, readResourceGroup},
		"services":       {true, readServices},
		"coverage":       {false, readCoverage},
		"image":          {true, readImage},
		"cache":          {true, readCache},
		"rules":          {false, func(p *Parser, d *Draft, n *tree.Node) { d.Rules, d.HasRules = p.Rules("rules", n, inJob), true }},
		"only":           {false, func(p *Parser, d *Draft, n *tree.Node) { d.Only = p.policy("only", n) }},
		"except":         {false, func(p *Parser, d *Draft, n *tree.Node) { d.Except = p.policy("except", n) }},
		"trigger":        {false, readTrigger},
		"inherit":        {false, func(*Parser, *Draft, *tree.Node) {}}, // read first
		"cirunner":       {true, readWatchdog},
	}
	namesInJobs = words.SortedKeys(JobKeywords)
	namesInDefault = slices.DeleteFunc(words.SortedKeys(JobKeywords), func(name string) bool { return !JobKeywords[name].InDefault })
}

// job reads a job that is no hidden one. The jobs that it extends are in it already.
func (p *Parser) job(f tree.Field) *Draft {
	d := &Draft{At: f.At}
	d.Job = pipeline.Job{Key: f.Key, Pos: p.Pos(f.At), Stage: "test", When: pipeline.OnSuccess, Watchdog: pipeline.Watchdog{Grace: -1},
		Artifacts: pipeline.Artifacts{When: pipeline.OnSuccess}}
	d.StageAt = f.At
	d.inherit = p.inheritance(f.Value.Field("inherit"))
	for _, f := range f.Value.Fields {
		p.jobField(d, f)
	}
	p.takeDefaults(d, f.Value)
	p.checkJob(d, f.Value)
	return d
}

func (p *Parser) jobField(d *Draft, f tree.Field) {
	k, known := JobKeywords[f.Key]
	advice, unsupported := UnsupportedInJobs[f.Key]
	why, ignored := p.ignored(f.Key)
	switch {
	case f.Value.Kind == tree.Null && (known || unsupported || ignored):
		// As good as none: that is how a job gets rid of what it extends.
	case ignored:
		p.passOver(f.At, f.Key, f.Value, why)
		if f.Key == "environment" {
			d.Environment = p.environment(f.Value)
		}
	case unsupported:
		p.Errorf(f.At, "%s is not supported: %s", f.Key, advice)
		d.scriptSeen = d.scriptSeen || f.Key == "run"
	case !known:
		p.Unknown(f, "a job", namesInJobs)
		d.scriptSeen = d.scriptSeen || words.Distance(f.Key, "script") < 3
	default:
		k.read(p, d, f.Value)
	}
}

// takeDefaults reads the keywords of default, or of the top of the file, that the
// job has not. One that starts a pipeline takes those alone which it may have.
func (p *Parser) takeDefaults(d *Draft, job *tree.Node) {
	for _, key := range namesInDefault {
		value := p.defaults[key]
		_, ignored := p.ignored(key)
		if ignored || d.triggers && !slices.Contains(besideTrigger, key) {
			continue
		}
		if value != nil && !job.Has(key) && d.inherit.defaults(key) {
			JobKeywords[key].read(p, d, value)
		}
	}
}

// checkJob looks at what keywords mean together.
func (p *Parser) checkJob(d *Draft, job *tree.Node) {
	if d.triggers && len(d.Script) == 0 {
		d.Script = []string{d.Trigger.script()}
	} else if d.mirrors && !job.Has("script") {
		d.Script = []string{"echo 'no other pipeline is looked at here'"}
	} else if !job.Has("script") && !d.scriptSeen && !p.Broken[d.Key] {
		p.Errorf(d.At, "the job %s has no script: give it one, or put a dot before its name if it is only for others to extend", words.Quote(d.Key))
	}
	// As in GitLab: nobody has to ask for the job. It holds for one with rules,
	// too, if it is the job and not a rule that says manual.
	if d.When == pipeline.Manual && !job.Has("allow_failure") {
		d.AllowFailure.All = true
	}
	p.checkTogether(d, job)
	p.checkImages(d, job)
	d.Variables = pipeline.Join(d.inherit.variables(p.Globals), d.variables)
	if len(d.Variables) > maxVariables {
		p.Errorf(d.At, "the job %s has %d variables: %d are enough", words.Quote(d.Key), len(d.Variables), maxVariables)
		d.Variables = nil
	}
	p.checkSize(d)
}

// checkTogether reports keywords that cannot stand in one job. GitLab refuses such a
// file, so that nothing of it may run.
func (p *Parser) checkTogether(d *Draft, job *tree.Node) {
	delayed := d.When == pipeline.Delayed
	if d.HasRules && (d.Only != nil || d.Except != nil) {
		p.Errorf(job.KeyAt("rules"), "rules cannot be used together with only or except: keep the rules")
	}
	switch {
	case d.triggers:
		p.checkTrigger(d, job)
	case d.HasRules && (delayed || job.Has("start_in")):
		p.Errorf(job.KeyAt("rules"), "rules cannot be used together with start_in: put when: delayed and start_in into a rule")
	case delayed && !job.Has("start_in"):
		p.Errorf(job.KeyAt("when"), "when: delayed needs start_in, such as start_in: 30 seconds")
	case !delayed && job.Has("start_in"):
		p.Errorf(job.KeyAt("start_in"), "start_in needs when: delayed")
	}
}

// checkSize looks at what the variables of a job grow to. Those of the machine
// are not known yet: with these, the job may still fail.
func (p *Parser) checkSize(d *Draft) {
	_, err := vars.Resolve(pipeline.References(d.Variables), func(string) (string, bool) { return "", false })
	if err == nil {
		return
	}
	p.Errorf(d.At, "the job %s: %v", words.Quote(d.Key), err)
	d.Variables = nil
}

func readStage(p *Parser, d *Draft, n *tree.Node) {
	stage, ok := p.String("stage", n)
	if !ok {
		stage = p.Stages[1] // which there is: one error is enough
	}
	d.Stage, d.StageAt = stage, n.At
}

func readWhen(p *Parser, d *Draft, n *tree.Node) {
	if when, ok := tree.Choice(p.Reader, "when", n, pipeline.OnSuccess, pipeline.OnFailure, pipeline.Always, pipeline.Manual, pipeline.Delayed, pipeline.Never); ok {
		d.When = when
	}
}

func readResourceGroup(p *Parser, d *Draft, n *tree.Node) {
	d.ResourceGroup, _ = p.String("resource_group", n)
}

// readCoverage reads an expression between slashes.
func readCoverage(p *Parser, d *Draft, n *tree.Node) {
	s, ok := p.String("coverage", n)
	if !ok {
		return
	}
	inner, slash := strings.CutPrefix(s, "/")
	inner, slash2 := strings.CutSuffix(inner, "/")
	of, err := regexp.Compile(inner)
	switch {
	case !slash || !slash2:
		p.Errorf(n.At, "coverage should be a regular expression between slashes, such as '/covered: \\d+%%/'")
	case err != nil:
		p.Errorf(n.At, "coverage: %v", err)
	default:
		d.Coverage = of
	}
}

func readTimeout(p *Parser, d *Draft, n *tree.Node) {
	d.Timeout, _ = p.Duration("timeout", n, tree.MaxTimeout)
}

// failures are the values of retry:when. Some are of servers and can never
// happen here.
var failures = []pipeline.Failure{
	pipeline.AnyFailure, pipeline.UnknownFailure, pipeline.ScriptFailure, "api_failure", pipeline.StuckFailure, pipeline.SystemFailure,
	"runner_unsupported", "stale_schedule", pipeline.TimeoutFailure, "archived_failure",
	"unmet_prerequisites", "scheduler_failure", "data_integrity_failure", "runner_provisioning_timeout", "runner_interrupted",
}

const MaxRetries = 2

func readRetry(p *Parser, d *Draft, n *tree.Node) {
	d.Retry = pipeline.Retry{}
	if n.Kind != tree.Mapping {
		if n.Kind != tree.Integer {
			p.Should("retry", n, "a number from 0 to %d, or a mapping of max, when and exit_codes", MaxRetries)
			return
		}
		d.Retry.Max, _ = p.Integer("retry", n, 0, MaxRetries)
		return
	}
	p.Fields("retry", n, tree.Keys{
		"max":        func(n *tree.Node) { d.Retry.Max, _ = p.Integer("retry:max", n, 0, MaxRetries) },
		"exit_codes": func(n *tree.Node) { d.Retry.ExitCodes = p.Integers("retry:exit_codes", n, 0, 255) },
		"when": func(n *tree.Node) {
			for _, item := range p.List("retry:when", n) {
				if failure, ok := tree.Choice(p.Reader, "retry:when", item, failures...); ok {
					d.Retry.When = append(d.Retry.When, failure)
				}
			}
		},
	}, nil)
	switch when := n.Field("when"); {
	case !n.Has("max"):
		p.Warn(n.At, "retry without max", "it has no effect without max, the number of retries: 1 or %d", MaxRetries)
	case when.Kind == tree.List && len(when.Items) == 0:
		p.Warn(when.At, "retry:when", "it is an empty list, which means every failure")
	}
}

func readAllowFailure(p *Parser, d *Draft, n *tree.Node) {
	d.AllowFailure = pipeline.AllowFailure{}
	if n.Kind != tree.Mapping {
		d.AllowFailure.All, _ = p.Boolean("allow_failure", n)
		return
	}
	ok := p.Fields("allow_failure", n, tree.Keys{
		"exit_codes": func(n *tree.Node) { d.AllowFailure.ExitCodes = p.Integers("allow_failure:exit_codes", n, 0, 255) },
	}, nil)
	codes := n.Field("exit_codes")
	if ok && (len(n.Fields) == 0 || codes.Kind == tree.List && len(codes.Items) == 0) {
		p.Errorf(n.At, "allow_failure should be true or false, or a mapping with exit_codes that may be")
	}
}
