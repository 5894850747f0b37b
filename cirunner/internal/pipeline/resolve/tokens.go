package resolve

import (
	"regexp"
	"slices"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/draft"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
)

// tokens are the variables with which a server lets jobs in, in a script.
var tokens = regexp.MustCompile(`\$\{?(CI_JOB_TOKEN|CI_JOB_JWT(?:_V[12])?|CI_REGISTRY_USER|CI_REGISTRY_PASSWORD|CI_DEPLOY_USER|CI_DEPLOY_PASSWORD|` +
	`CI_DEPENDENCY_PROXY_USER|CI_DEPENDENCY_PROXY_PASSWORD|CI_REPOSITORY_URL)\b`)

// findTokens looks for what the scripts of a job need and only a server issues. A job in a
// container has nothing of the runner's environment.
func (g *grapher) findTokens(d *draft.Draft, job *pipeline.Job) {
	has := func(name string) bool {
		own := slices.ContainsFunc(job.Variables, func(v pipeline.Variable) bool { return v.Name == name })
		return own || g.Vars[name] != "" || job.Image == nil && g.Elsewhere != nil && g.Elsewhere(name)
	}
	for _, command := range slices.Concat(job.Before, job.Script, job.After) {
		for _, found := range tokens.FindAllStringSubmatch(command, -1) {
			name := found[1]
			if slices.Contains(job.Missing, name) || has(name) {
				continue
			}
			job.Missing = append(job.Missing, name)
			g.Warn(d.At, name, "the job %s needs it, and only a server issues it: give it with -variables or -var", words.Quote(d.Key))
		}
	}
}
