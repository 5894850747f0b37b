package draft

import (
	"slices"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
)

// GlobalKeywords are what the top of a file has besides jobs, and their readers.
var GlobalKeywords = map[string]func(*Parser, *tree.Node){
	"stages":    (*Parser).readStages,
	"variables": func(p *Parser, n *tree.Node) { p.Globals = p.variables(n, true) },
	"default":   (*Parser).readDefault,
	"workflow":  func(*Parser, *tree.Node) {}, // read when the variables are known
	"include":   func(*Parser, *tree.Node) {}, // read first
}

// outsideDefault are the keywords of default that may stand at the top of a
// file as well, from a time before default.
var outsideDefault = []string{"before_script", "after_script", "services", "cache", "image"}

// GlobalKeywords reads what is at the top of a file and is no job.
func (p *Parser) GlobalKeywords(file *tree.Node) {
	p.file = file
	p.Stages = []string{".pre", "build", "test", "deploy", ".post"}
	for _, f := range p.file.Fields {
		if f.Value.Kind == tree.Null {
			continue // as good as none
		}
		if read := GlobalKeywords[f.Key]; read != nil {
			read(p, f.Value)
		} else if advice, known := UnsupportedGlobally[f.Key]; known {
			p.Errorf(f.At, "%s is not supported: %s", f.Key, advice)
		}
	}
	p.setDefaults()
}

// setDefaults collects what jobs take from default and from the top of the file.
func (p *Parser) setDefaults() {
	p.defaults = make(map[string]*tree.Node)
	for _, f := range p.file.Field("default").Fields {
		if JobKeywords[f.Key].InDefault && f.Value.Kind != tree.Null {
			p.defaults[f.Key] = f.Value
		}
	}
	for _, key := range outsideDefault {
		value := p.file.Field(key)
		why, ignored := p.ignored(key)
		switch _, twice := p.defaults[key]; {
		case value.Kind == tree.Null:
		case ignored:
			p.passOver(p.file.KeyAt(key), key, value, why)
		case twice:
			p.Errorf(p.file.KeyAt(key), "%s is here and in default: keep the one in default", key)
		default:
			p.defaults[key] = value
			JobKeywords[key].read(p, &Draft{}, value)
		}
	}
}

func (p *Parser) readStages(n *tree.Node) {
	names := p.stages(n)
	if n.Kind == tree.List && len(n.Items) == 0 {
		p.Errorf(n.At, "stages has no stage: name some, or leave it out for build, test, deploy")
	}
	p.Stages = []string{".pre"}
	for _, name := range names {
		switch {
		case strings.TrimSpace(name.Text) == "" || words.HasControl(name.Text) || len(name.Text) > MaxName:
			p.Errorf(name.At, "%s cannot be the name of a stage: it should be in one line, of %d bytes at most", words.Quote(name.Text), MaxName)
		case name.Text == ".pre" || name.Text == ".post":
			// They are there anyway, first and last.
		case slices.Contains(p.Stages, name.Text):
			p.Warn(name.At, "a stage that is named twice", "%s counts where it is named first", words.Quote(name.Text))
		default:
			p.Stages = append(p.Stages, name.Text)
		}
	}
	p.Stages = append(p.Stages, ".post")
}

// stages returns the names of a list in which there may be lists, as !reference makes them.
func (p *Parser) stages(n *tree.Node) []*tree.Node {
	if n.Kind != tree.List || len(n.Items) > tree.MaxItems {
		return p.Texts("stages", n)
	}
	items, ok := flat(n, 0, nil)
	if !ok {
		p.Errorf(n.At, "stages has lists in lists more than %d deep, or too many of them", maxNesting)
		return nil
	}
	return p.Texts("stages", &tree.Node{Kind: tree.List, At: n.At, Items: items})
}

// readDefault checks what jobs would otherwise complain about one by one, or
// not at all if no job takes it.
func (p *Parser) readDefault(n *tree.Node) {
	if !p.IsMapping("default", n) {
		return
	}
	for _, f := range n.Fields {
		k, known := JobKeywords[f.Key]
		advice, unsupported := UnsupportedInJobs[f.Key]
		why, ignored := p.ignored(f.Key)
		switch {
		case ignored && slices.Contains(passedOverInDefault, f.Key):
			p.passOver(f.At, f.Key, f.Value, why)
		case unsupported:
			p.Errorf(f.At, "%s is not supported: %s", f.Key, advice)
		case known && !k.InDefault, ignored:
			p.Errorf(f.At, "%s cannot be in default: put it into the jobs, or into a hidden job that they extend", f.Key)
		case !known:
			p.Unknown(f, "default", namesInDefault)
		case f.Value.Kind != tree.Null:
			k.read(p, &Draft{}, f.Value)
		}
	}
}

// A Workflow is what the keyword of that name says.
type Workflow struct {
	Name  string    // of the pipeline; empty for none
	Given bool      // there are rules
	At    tree.Mark // of rules
	Rules []Rule
}

// Workflow returns what the file says of the pipeline as a whole; nothing if it has no workflow.
func (p *Parser) Workflow() (w Workflow) {
	n := p.file.Field("workflow")
	if n.Kind == tree.Null {
		return w
	}
	p.Fields("workflow", n, tree.Keys{
		"name": func(n *tree.Node) { w.Name, _ = p.String("workflow:name", n) },
		"rules": func(n *tree.Node) {
			w.Rules, w.Given = p.Rules("workflow:rules", n, inWorkflow), true
		},
	}, map[string]string{"auto_cancel": "pipelines do not know of each other"})
	w.At = n.KeyAt("rules")
	return w
}

// Jobs reads everything at the top of the file that is a job. globals are the
// variables of all jobs.
func (p *Parser) Jobs(globals []pipeline.Variable) []*Draft {
	p.Globals = globals
	for _, f := range p.file.Fields {
		if IsGlobal(f.Key) || strings.HasPrefix(f.Key, ".") {
			continue
		}
		if f.Value.Kind != tree.Mapping {
			p.notAJob(f)
			continue
		}
		if len(p.drafts) == 2*MaxJobs { // those that never run are jobs of the file, too
			p.Errorf(f.At, "the file has more than %d jobs from here on", 2*MaxJobs)
			break
		}
		p.checkName(f)
		p.drafts = append(p.drafts, p.job(f))
	}
	return p.drafts
}

// IsGlobal reports whether a key at the top of a file is a keyword, and no job.
func IsGlobal(key string) bool {
	_, unsupported := UnsupportedGlobally[key]
	return GlobalKeywords[key] != nil || unsupported || slices.Contains(outsideDefault, key)
}

func (p *Parser) notAJob(f tree.Field) {
	if f.Value.Kind == tree.Invalid {
		return
	}
	p.Errorf(f.At, "%s should be a job, a mapping with a script, not %s%s",
		words.Quote(f.Key), f.Value, p.DidYouMean(f.Key, words.SortedKeys(GlobalKeywords)))
}

// reservedNames cannot be the names of jobs; most reserved names are keywords
// at the top of a file, which are never taken for jobs.
var reservedNames = []string{"true", "false", "nil", "pages:deploy"}

const MaxName = 255

func (p *Parser) checkName(f tree.Field) {
	switch {
	case slices.Contains(reservedNames, f.Key):
		p.Errorf(f.At, "%s is a reserved name: call the job something else", words.Quote(f.Key))
	case strings.TrimSpace(f.Key) == "":
		p.Errorf(f.At, "a job needs a name")
	case len(f.Key) > MaxName:
		p.Errorf(f.At, "the name of a job may be %d bytes long, this has %d", MaxName, len(f.Key))
	case words.HasControl(f.Key):
		p.Errorf(f.At, "the name of a job must be in one line, without control characters")
	}
}
