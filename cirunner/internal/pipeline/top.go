package pipeline

import (
	"slices"
	"strings"
)

// globalKeywords are what the top of a file has besides jobs, and their readers.
var globalKeywords = map[string]func(*parser, *node){
	"stages":    (*parser).readStages,
	"variables": func(p *parser, n *node) { p.globals = p.variables(n, true) },
	"default":   (*parser).readDefault,
	"workflow":  func(*parser, *node) {}, // read when the variables are known
	"include":   func(*parser, *node) {}, // read first
}

// outsideDefault are the keywords of default that may stand at the top of a
// file as well, from a time before default.
var outsideDefault = []string{"before_script", "after_script", "services", "cache", "image"}

func (p *parser) globalKeywords() {
	p.stages = []string{".pre", "build", "test", "deploy", ".post"}
	for _, f := range p.root.fields {
		if f.value.kind == null {
			continue // as good as none
		}
		if read := globalKeywords[f.key]; read != nil {
			read(p, f.value)
		} else if advice, known := unsupportedGlobally[f.key]; known {
			p.errorf(f.at, "%s is not supported: %s", f.key, advice)
		}
	}
	p.setDefaults()
}

// setDefaults collects what jobs take from default and from the top of the file.
func (p *parser) setDefaults() {
	p.defaults = make(map[string]*node)
	for _, f := range p.root.field("default").fields {
		if jobKeywords[f.key].inDefault && f.value.kind != null {
			p.defaults[f.key] = f.value
		}
	}
	for _, key := range outsideDefault {
		value := p.root.field(key)
		why, ignored := p.ignored(key)
		switch _, twice := p.defaults[key]; {
		case value.kind == null:
		case ignored:
			p.ignore(p.root.keyAt(key), key, why)
		case twice:
			p.errorf(p.root.keyAt(key), "%s is here and in default: keep the one in default", key)
		default:
			p.defaults[key] = value
			jobKeywords[key].read(p, &draft{}, value)
		}
	}
}

func (p *parser) readStages(n *node) {
	names := p.list("stages", n)
	if n.kind == list && len(n.items) == 0 {
		p.errorf(n.at, "stages has no stage: name some, or leave it out for build, test, deploy")
	}
	p.stages = []string{".pre"}
	for _, name := range names {
		switch {
		case strings.TrimSpace(name.text) == "" || hasControl(name.text) || len(name.text) > maxName:
			p.errorf(name.at, "%s cannot be the name of a stage: it should be in one line, of %d bytes at most", quote(name.text), maxName)
		case name.text == ".pre" || name.text == ".post":
			// They are there anyway, first and last.
		case slices.Contains(p.stages, name.text):
			p.warn(name.at, "a stage that is named twice", "%s counts where it is named first", quote(name.text))
		default:
			p.stages = append(p.stages, name.text)
		}
	}
	p.stages = append(p.stages, ".post")
}

// readDefault checks what jobs would otherwise complain about one by one, or
// not at all if no job takes it.
func (p *parser) readDefault(n *node) {
	if !p.isMapping("default", n) {
		return
	}
	for _, f := range n.fields {
		k, known := jobKeywords[f.key]
		advice, unsupported := unsupportedInJobs[f.key]
		why, ignored := p.ignored(f.key)
		switch {
		case ignored:
			p.ignore(f.at, f.key, why)
		case unsupported:
			p.errorf(f.at, "%s is not supported: %s", f.key, advice)
		case known && !k.inDefault:
			p.errorf(f.at, "%s cannot be in default: put it into the jobs, or into a hidden job that they extend", f.key)
		case !known:
			p.unknown(f, "default", namesInDefault)
		case f.value.kind != null:
			k.read(p, &draft{}, f.value)
		}
	}
}

// jobs reads everything at the top of the file that is a job.
func (p *parser) jobs() {
	for _, f := range p.root.fields {
		if isGlobal(f.key) || strings.HasPrefix(f.key, ".") {
			continue
		}
		if f.value.kind != mapping {
			p.notAJob(f)
			continue
		}
		if len(p.drafts) == 2*maxJobs { // those that never run are jobs of the file, too
			p.errorf(f.at, "the file has more than %d jobs from here on", 2*maxJobs)
			return
		}
		p.checkName(f)
		p.drafts = append(p.drafts, p.job(f))
	}
}

// isGlobal reports whether a key at the top of a file is a keyword, and no job.
func isGlobal(key string) bool {
	_, unsupported := unsupportedGlobally[key]
	return globalKeywords[key] != nil || unsupported || slices.Contains(outsideDefault, key)
}

func (p *parser) notAJob(f field) {
	if f.value.kind == invalid {
		return
	}
	p.errorf(f.at, "%s should be a job, a mapping with a script, not %s%s",
		quote(f.key), f.value, p.didYouMean(f.key, sortedKeys(globalKeywords)))
}

// reservedNames cannot be the names of jobs; most reserved names are keywords
// at the top of a file, which are never taken for jobs.
var reservedNames = []string{"true", "false", "nil", "pages:deploy"}

const maxName = 255

func (p *parser) checkName(f field) {
	switch {
	case slices.Contains(reservedNames, f.key):
		p.errorf(f.at, "%s is a reserved name: call the job something else", quote(f.key))
	case strings.TrimSpace(f.key) == "":
		p.errorf(f.at, "a job needs a name")
	case len(f.key) > maxName:
		p.errorf(f.at, "the name of a job may be %d bytes long, this has %d", maxName, len(f.key))
	case hasControl(f.key):
		p.errorf(f.at, "the name of a job must be in one line, without control characters")
	}
}
