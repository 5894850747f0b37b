package pipeline

import (
	"regexp"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/vars"
)

// A draft is a job as the file has it: its parts are not taken apart, and other
// jobs are names.
type draft struct {
	Job // what all parts have in common

	key       string
	stageAt   mark
	at        mark
	count     int    // of parallel: n; 0 without
	matrix    []cell // of parallel:matrix
	needs     []needed
	hasNeeds  bool
	fetch     []*node // of dependencies
	hasFetch  bool
	variables []Variable // of the job alone
	inherit   inheritance

	rules        []rule
	hasRules     bool
	only, except *policy
	triggers     bool // it starts another pipeline, which there is not

	// A keyword was reported that might have been the script.
	scriptSeen bool
}

// A jobKeyword reads one keyword of a job. One that may be in default is read
// from there when a job does not have it.
type jobKeyword struct {
	inDefault bool
	read      func(p *parser, d *draft, n *node)
}

// jobKeywords are all of them; the names are in alphabetical order. They are set
// by init, because their readers use them in turn.
var (
	jobKeywords                 map[string]jobKeyword
	namesInJobs, namesInDefault []string
)

func init() {
	jobKeywords = map[string]jobKeyword{
		"stage":          {false, readStage},
		"before_script":  {true, func(p *parser, d *draft, n *node) { d.Before = p.script("before_script", n) }},
		"script":         {false, readScript},
		"after_script":   {true, func(p *parser, d *draft, n *node) { d.After = p.script("after_script", n) }},
		"variables":      {false, func(p *parser, d *draft, n *node) { d.variables = p.variables(n, false) }},
		"needs":          {false, readNeeds},
		"dependencies":   {false, readDependencies},
		"parallel":       {false, readParallel},
		"timeout":        {true, readTimeout},
		"retry":          {true, readRetry},
		"allow_failure":  {false, readAllowFailure},
		"when":           {false, readWhen},
		"start_in":       {false, func(p *parser, d *draft, n *node) { d.StartIn, _ = p.duration("start_in", n, maxTimeout) }},
		"interruptible":  {true, func(p *parser, d *draft, n *node) { d.Interruptible, _ = p.boolean("interruptible", n) }},
		"artifacts":      {true, readArtifacts},
		"resource_group": {false, readResourceGroup},
		"services":       {true, readServices},
		"coverage":       {false, readCoverage},
		"image":          {true, readImage},
		"cache":          {true, readCache},
		"rules":          {false, func(p *parser, d *draft, n *node) { d.rules, d.hasRules = p.rules("rules", n, inJob), true }},
		"only":           {false, func(p *parser, d *draft, n *node) { d.only = p.policy("only", n) }},
		"except":         {false, func(p *parser, d *draft, n *node) { d.except = p.policy("except", n) }},
		"inherit":        {false, func(*parser, *draft, *node) {}}, // read first
		"cirunner":       {true, readWatchdog},
	}
	namesInJobs = sortedKeys(jobKeywords)
	namesInDefault = slices.DeleteFunc(sortedKeys(jobKeywords), func(name string) bool { return !jobKeywords[name].inDefault })
}

// job reads a job that is no hidden one. The jobs that it extends are in it already.
func (p *parser) job(f field) *draft {
	d := &draft{key: f.key, at: f.at}
	d.Job = Job{Key: f.key, Pos: p.pos(f.at), Stage: "test", When: OnSuccess, Watchdog: Watchdog{Grace: -1},
		Artifacts: Artifacts{When: OnSuccess}}
	d.stageAt = f.at
	d.inherit = p.inheritance(f.value.field("inherit"))
	for _, f := range f.value.fields {
		p.jobField(d, f)
	}
	p.takeDefaults(d, f.value)
	p.checkJob(d, f.value)
	return d
}

func (p *parser) jobField(d *draft, f field) {
	k, known := jobKeywords[f.key]
	advice, unsupported := unsupportedInJobs[f.key]
	why, ignored := p.ignored(f.key)
	switch {
	case f.value.kind == null && (known || unsupported || ignored):
		// As good as none: that is how a job gets rid of what it extends.
	case ignored:
		p.ignore(f.at, f.key, why)
		d.triggers = d.triggers || f.key == "trigger"
		if f.key == "environment" {
			d.Environment = environment(f.value)
		}
	case unsupported:
		p.errorf(f.at, "%s is not supported: %s", f.key, advice)
		d.scriptSeen = d.scriptSeen || f.key == "run"
	case !known:
		p.unknown(f, "a job", namesInJobs)
		d.scriptSeen = d.scriptSeen || distance(f.key, "script") < 3
	default:
		k.read(p, d, f.value)
	}
}

// takeDefaults reads the keywords of default, or of the top of the file, that the
// job has not.
func (p *parser) takeDefaults(d *draft, job *node) {
	for _, key := range namesInDefault {
		value := p.defaults[key]
		if _, ignored := p.ignored(key); ignored {
			continue
		}
		if value != nil && !job.has(key) && d.inherit.defaults(key) {
			jobKeywords[key].read(p, d, value)
		}
	}
}

// checkJob looks at what keywords mean together.
func (p *parser) checkJob(d *draft, job *node) {
	if d.triggers && len(d.Script) == 0 { // nothing of it is for a shell
		d.Before, d.After, d.Services, d.Caches = nil, nil, nil, nil
		d.Image, d.ImageServices = nil, nil
		d.Script = []string{"echo 'no other pipeline is started here'"}
	} else if !job.has("script") && !d.scriptSeen && !p.broken[d.key] {
		p.errorf(d.at, "the job %s has no script: give it one, or put a dot before its name if it is only for others to extend", quote(d.key))
	}
	// As in GitLab: nobody has to ask for the job. It holds for one with rules,
	// too, if it is the job and not a rule that says manual.
	if d.When == Manual && !job.has("allow_failure") {
		d.AllowFailure.All = true
	}
	p.checkTogether(d, job)
	p.checkImages(d, job)
	d.Variables = join(d.inherit.variables(p.globals), d.variables)
	if len(d.Variables) > maxVariables {
		p.errorf(d.at, "the job %s has %d variables: %d are enough", quote(d.key), len(d.Variables), maxVariables)
		d.Variables = nil
	}
	p.checkSize(d)
}

// checkTogether reports keywords that cannot stand in one job. GitLab refuses such a
// file, so that nothing of it may run.
func (p *parser) checkTogether(d *draft, job *node) {
	delayed := d.When == Delayed
	if d.hasRules && (d.only != nil || d.except != nil) {
		p.errorf(job.keyAt("rules"), "rules cannot be used together with only or except: keep the rules")
	}
	if d.triggers && job.has("script") {
		p.errorf(job.keyAt("trigger"), "trigger cannot be used together with script: a job does one or the other")
	}
	switch {
	case d.hasRules && (delayed || job.has("start_in")):
		p.errorf(job.keyAt("rules"), "rules cannot be used together with start_in: put when: delayed and start_in into a rule")
	case delayed && !job.has("start_in"):
		p.errorf(job.keyAt("when"), "when: delayed needs start_in, such as start_in: 30 seconds")
	case !delayed && job.has("start_in"):
		p.errorf(job.keyAt("start_in"), "start_in needs when: delayed")
	}
}

// checkSize looks at what the variables of a job grow to. Those of the machine
// are not known yet: with these, the job may still fail.
func (p *parser) checkSize(d *draft) {
	_, err := vars.Resolve(References(d.Variables), func(string) (string, bool) { return "", false })
	if err == nil {
		return
	}
	p.errorf(d.at, "the job %s: %v", quote(d.key), err)
	d.Variables = nil
}

func readStage(p *parser, d *draft, n *node) {
	stage, ok := p.string("stage", n)
	if !ok {
		stage = p.stages[1] // which there is: one error is enough
	}
	d.Stage, d.stageAt = stage, n.at
}

func readWhen(p *parser, d *draft, n *node) {
	if when, ok := choice(p, "when", n, OnSuccess, OnFailure, Always, Manual, Delayed, Never); ok {
		d.When = when
	}
}

func readResourceGroup(p *parser, d *draft, n *node) {
	d.ResourceGroup, _ = p.string("resource_group", n)
}

// readCoverage reads an expression between slashes.
func readCoverage(p *parser, d *draft, n *node) {
	s, ok := p.string("coverage", n)
	if !ok {
		return
	}
	inner, slash := strings.CutPrefix(s, "/")
	inner, slash2 := strings.CutSuffix(inner, "/")
	of, err := regexp.Compile(inner)
	switch {
	case !slash || !slash2:
		p.errorf(n.at, "coverage should be a regular expression between slashes, such as '/covered: \\d+%%/'")
	case err != nil:
		p.errorf(n.at, "coverage: %v", err)
	default:
		d.Coverage = of
	}
}

func readTimeout(p *parser, d *draft, n *node) {
	d.Timeout, _ = p.duration("timeout", n, maxTimeout)
}

// failures are the values of retry:when. Some are of servers and can never
// happen here.
var failures = []Failure{
	AnyFailure, UnknownFailure, ScriptFailure, "api_failure", StuckFailure, SystemFailure,
	"runner_unsupported", "stale_schedule", TimeoutFailure, "archived_failure",
	"unmet_prerequisites", "scheduler_failure", "data_integrity_failure",
}

const maxRetries = 2

func readRetry(p *parser, d *draft, n *node) {
	d.Retry = Retry{}
	if n.kind != mapping {
		if n.kind != integer {
			p.should("retry", n, "a number from 0 to %d, or a mapping of max, when and exit_codes", maxRetries)
			return
		}
		d.Retry.Max, _ = p.integer("retry", n, 0, maxRetries)
		return
	}
	p.fields("retry", n, keys{
		"max":        func(n *node) { d.Retry.Max, _ = p.integer("retry:max", n, 0, maxRetries) },
		"exit_codes": func(n *node) { d.Retry.ExitCodes = p.integers("retry:exit_codes", n, 0, 255) },
		"when": func(n *node) {
			for _, item := range p.list("retry:when", n) {
				if failure, ok := choice(p, "retry:when", item, failures...); ok {
					d.Retry.When = append(d.Retry.When, failure)
				}
			}
		},
	}, nil)
	switch when := n.field("when"); {
	case !n.has("max"):
		p.warn(n.at, "retry without max", "it has no effect without max, the number of retries: 1 or %d", maxRetries)
	case when.kind == list && len(when.items) == 0:
		p.warn(when.at, "retry:when", "it is an empty list, which means every failure")
	}
}

func readAllowFailure(p *parser, d *draft, n *node) {
	d.AllowFailure = AllowFailure{}
	if n.kind != mapping {
		d.AllowFailure.All, _ = p.boolean("allow_failure", n)
		return
	}
	ok := p.fields("allow_failure", n, keys{
		"exit_codes": func(n *node) { d.AllowFailure.ExitCodes = p.integers("allow_failure:exit_codes", n, 0, 255) },
	}, nil)
	codes := n.field("exit_codes")
	if ok && (len(n.fields) == 0 || codes.kind == list && len(codes.items) == 0) {
		p.errorf(n.at, "allow_failure should be true or false, or a mapping with exit_codes that may be")
	}
}
