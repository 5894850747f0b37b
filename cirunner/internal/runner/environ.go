//go:build unix

package runner

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/predefined"
	"github.com/ambit-go/ambit/cirunner/internal/vars"
	"github.com/ambit-go/ambit/cirunner/internal/workdir"
)

// commonVariables are the predefined variables that are the same for all jobs.
func (r *Runner) commonVariables(ctx context.Context) map[string]string {
	run := r.Variables
	if run == nil {
		run = predefined.New(ctx, r.Work.Project, predefined.Wish{}).Variables
	}
	id := strconv.Itoa(r.Work.ID)
	return vars.Merge(run, map[string]string{
		"CI_PIPELINE_ID": id, "CI_PIPELINE_IID": id, "CI_PIPELINE_CREATED_AT": time.Now().UTC().Format(time.RFC3339),
		"CI_PIPELINE_URL": run["CI_PROJECT_URL"] + "/-/pipelines/" + id,
		"CI_CONFIG_PATH":  r.Pipeline.File, "CI_RUNNER_ID": "1", "CI_CONCURRENT_ID": "0",
	})
}

// environ is the environment of the job's shells: that of the runner, the
// predefined variables, and the given ones, each over the one before.
func (a *attempt) environ(own []pipeline.Variable, more map[string]string) ([]string, error) {
	resolved, err := a.resolve(own, more)
	if err != nil {
		return nil, err
	}
	resolved[workdir.TokenVariable] = a.r.Work.Tokens(a.slug()) // nobody's to change
	resolved["PWD"] = a.dir
	// The work of git in a job is never done to the repository around it.
	resolved["GIT_CEILING_DIRECTORIES"] = filepath.Dir(a.dir)
	return vars.Environ(a.inherited(), resolved), nil
}

// resolve returns the values of the predefined variables and the given ones.
func (a *attempt) resolve(own []pipeline.Variable, more map[string]string) (map[string]string, error) {
	layers := []map[string]string{a.r.base, a.predefined(), more, pipeline.References(a.inFiles(own)), a.given}
	if a.job.Environment.Name == "" {
		return vars.Resolve(vars.Merge(layers...), a.outside)
	}
	resolved, err := vars.Resolve(vars.Merge(layers...), a.outside)
	if err != nil {
		return nil, err
	}
	environment, err := a.environment(resolved)
	if err != nil {
		return nil, err
	}
	return vars.Resolve(vars.Merge(append([]map[string]string{environment}, layers...)...), a.outside)
}

// environment are the variables of the job's environment. The URL may refer to the
// others, as in https://$CI_ENVIRONMENT_SLUG.example.com.
func (a *attempt) environment(resolved map[string]string) (map[string]string, error) {
	e := a.job.Environment
	name, err := vars.Expand(e.Name, resolved)
	if err != nil {
		return nil, err
	}
	all := map[string]string{
		"CI_ENVIRONMENT_NAME": strings.ReplaceAll(name, "$", "$$"), "CI_ENVIRONMENT_SLUG": predefined.EnvironmentSlug(name),
		"CI_ENVIRONMENT_ACTION": e.Action,
	}
	if e.URL != "" {
		all["CI_ENVIRONMENT_URL"] = e.URL
	}
	if e.Tier != "" {
		all["CI_ENVIRONMENT_TIER"] = e.Tier
	}
	return all, nil
}

// predefined are the predefined variables of the job.
func (a *attempt) predefined() map[string]string {
	j := a.job
	id := strconv.Itoa(a.r.Work.ID) + "00" + strconv.Itoa(j.Index+1)
	image := ""
	if j.Image != nil {
		image = j.Image.Name
	}
	return map[string]string{
		"CI_JOB_IMAGE": image,
		"CI_JOB_NAME":  j.Name, "CI_JOB_NAME_SLUG": predefined.Slug(j.Name), "CI_JOB_STAGE": j.Stage,
		"CI_JOB_ID": id, "CI_JOB_URL": a.r.base["CI_PROJECT_URL"] + "/-/jobs/" + id, "CI_JOB_STARTED_AT": time.Now().UTC().Format(time.RFC3339),
		"CI_PROJECT_DIR": a.dir, "CI_BUILDS_DIR": filepath.Dir(a.dir), "CI_JOB_STATUS": "running",
		"CI_JOB_ATTEMPT": strconv.Itoa(a.number),
	}
}

// expandAll replaces variables in patterns.
func (a *attempt) expandAll(patterns []string) ([]string, error) {
	resolved, err := a.resolve(a.job.Variables, nil)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, p := range patterns {
		expanded, err := vars.Expand(p, resolved)
		if err != nil {
			return nil, err
		}
		if expanded == "" {
			a.note("cirunner: artifacts: %s is empty", p)
			continue
		}
		all = append(all, expanded)
	}
	return all, nil
}

// outside looks a variable up that the run does not have. A container has nothing of the
// runner's environment.
func (a *attempt) outside(name string) (string, bool) {
	if a.inContainer() {
		return "", false
	}
	return os.LookupEnv(name)
}

func (a *attempt) inherited() []string {
	if a.inContainer() {
		return nil
	}
	return inherited()
}

// inherited is the runner's own environment, without what would make a shell or
// git do something else than the pipeline says.
func inherited() []string {
	var env []string
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		if name == "BASH_ENV" || name == "ENV" || name == "SHELLOPTS" || name == "BASHOPTS" ||
			strings.HasPrefix(name, "BASH_FUNC_") || strings.HasPrefix(name, "GIT_DIR") || strings.HasPrefix(name, "GIT_WORK") || strings.HasPrefix(name, "GIT_INDEX") {
			continue
		}
		env = append(env, e)
	}
	return env
}
