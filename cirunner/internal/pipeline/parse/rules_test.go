package parse

import (
	"maps"
	"strings"
	"testing"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/stretchr/testify/require"
)

// kinds are the runs that the tables below are about.
var kinds = map[string]map[string]string{
	"branch":   {"CI_PIPELINE_SOURCE": "push", "CI_COMMIT_BRANCH": "topic", "CI_COMMIT_REF_NAME": "topic"},
	"main":     {"CI_PIPELINE_SOURCE": "push", "CI_COMMIT_BRANCH": "main", "CI_COMMIT_REF_NAME": "main"},
	"tag":      {"CI_PIPELINE_SOURCE": "push", "CI_COMMIT_TAG": "v1.2.3", "CI_COMMIT_REF_NAME": "v1.2.3"},
	"mr":       {"CI_PIPELINE_SOURCE": "merge_request_event", "CI_MERGE_REQUEST_IID": "1", "CI_COMMIT_REF_NAME": "topic"},
	"schedule": {"CI_PIPELINE_SOURCE": "schedule", "CI_COMMIT_BRANCH": "main", "CI_COMMIT_REF_NAME": "main"},
	"web":      {"CI_PIPELINE_SOURCE": "web", "CI_COMMIT_BRANCH": "main", "CI_COMMIT_REF_NAME": "main"},
}

// optionsOf returns a run of a kind, in which docs/a.md and api/x.go have changed
// and which has a Dockerfile.
func optionsOf(kind string) Options {
	v := maps.Clone(kinds[kind])
	maps.Copy(v, map[string]string{"CI": "true", "CI_DEFAULT_BRANCH": "main", "CI_PROJECT_PATH": "group/project"})
	return Options{
		Variables: v,
		Changed: func(since string) ([]string, bool) {
			if since == "refs/heads/old" {
				return []string{"old.go"}, true
			}
			return []string{"docs/a.md", "api/x.go"}, kind != "tag"
		},
		Files: func() []string { return []string{"Dockerfile", "api/x.go", "deep/er/y.rs", "docs/a.md"} },
	}
}

// chosen returns the jobs of a run, each with how it starts if not at once.
func chosen(t *testing.T, kind, data string, set map[string]string) string {
	t.Helper()
	o := optionsOf(kind)
	o.Set = set
	p, err := o.Parse("f.yml", []byte(data))
	require.NoError(t, err)
	var all []string
	for _, j := range p.Jobs {
		s := j.Name
		if j.When != pipeline.OnSuccess {
			s += "/" + string(j.When)
		}
		if j.AllowFailure.All {
			s += "/may fail"
		}
		all = append(all, s)
	}
	return strings.Join(all, ", ")
}

// The pages of GitLab about rules, workflow, only and except say what each of
// these does: one table for each page's own examples, in other words.
func TestRulesOfGitLabsPages(t *testing.T) {
	for _, c := range []struct {
		name, data string
		want       map[string]string // by kind of run; a kind that is not named has no job
	}{
		{"no rules, no only: branches and tags", `j: {script: x}`,
			map[string]string{"branch": "j", "main": "j", "tag": "j", "schedule": "j", "web": "j"}},
		{"an if without when is on_success", `j: {script: x, rules: [{if: $CI_PIPELINE_SOURCE == "merge_request_event"}]}`,
			map[string]string{"mr": "j"}},
		{"the first rule that matches counts", `
j:
  script: x
  rules:
    - {if: $CI_PIPELINE_SOURCE == "merge_request_event", when: manual, allow_failure: true}
    - if: $CI_PIPELINE_SOURCE == "schedule"`,
			map[string]string{"mr": "j/manual/may fail", "schedule": "j"}},
		{"all but", `
j:
  script: x
  rules:
    - {if: $CI_PIPELINE_SOURCE == "merge_request_event", when: never}
    - {if: $CI_PIPELINE_SOURCE == "schedule", when: never}
    - when: on_success`,
			map[string]string{"branch": "j", "main": "j", "tag": "j", "web": "j"}},
		{"a manual rule holds up, a manual job does not", `
a: {script: x, when: manual}
b: {script: x, rules: [{if: $CI_COMMIT_BRANCH, when: manual}]}
c: {script: x, when: manual, rules: [{if: $CI_COMMIT_BRANCH}]}
d: {script: x, allow_failure: true, rules: [{if: $CI_COMMIT_BRANCH, when: manual}]}`,
			map[string]string{"branch": "a/manual/may fail, b/manual, c/manual/may fail, d/manual/may fail", "main": "a/manual/may fail, b/manual, c/manual/may fail, d/manual/may fail",
				"schedule": "a/manual/may fail, b/manual, c/manual/may fail, d/manual/may fail", "web": "a/manual/may fail, b/manual, c/manual/may fail, d/manual/may fail", "tag": "a/manual/may fail"}},
		{"a rule takes the when of its job", `j: {script: x, when: always, rules: [{if: $CI_COMMIT_TAG}]}`, map[string]string{"tag": "j/always"}},
		{"delayed", `j: {script: x, rules: [{if: $CI_COMMIT_BRANCH == "main", when: delayed, start_in: 3 hours, allow_failure: true}]}`,
			map[string]string{"main": "j/delayed/may fail", "schedule": "j/delayed/may fail", "web": "j/delayed/may fail"}},
		{"no rule at all", `j: {script: x, rules: []}`, nil},
		{"all clauses of a rule must match", `
j:
  script: x
  rules:
    - {if: $CI_COMMIT_BRANCH == "main", changes: [docs/*], exists: [Dockerfile]}`,
			map[string]string{"main": "j", "schedule": "j", "web": "j"}},
		{"changes", `
a: {script: x, rules: [{changes: [Dockerfile]}]}
b: {script: x, rules: [{changes: ["**/*.go"]}]}
c: {script: x, rules: [{changes: {paths: [docs/*.md]}}]}
d: {script: x, rules: [{changes: ["*.md"]}]}
e: {script: x, variables: {DIR: api}, rules: [{changes: [$DIR/**/*]}]}
f: {script: x, rules: [{changes: {paths: [old.go], compare_to: refs/heads/old}}]}`,
			map[string]string{"branch": "b, c, e, f", "main": "b, c, e, f", "schedule": "a, b, c, d, e, f", "web": "a, b, c, d, e, f", "mr": "b, c, e, f", "tag": "a, b, c, d, e, f"}},
		{"exists", `
a: {script: x, rules: [{exists: [Dockerfile]}]}
b: {script: x, rules: [{exists: {paths: ["**/*.rb"]}}]}
c: {script: x, rules: [{exists: [api/*.go]}]}`,
			map[string]string{"branch": "a, c", "main": "a, c", "tag": "a, c", "mr": "a, c", "schedule": "a, c", "web": "a, c"}},
		{"regular expressions", `
a: {script: x, rules: [{if: $CI_COMMIT_TAG =~ /^v\d+\.\d+/}]}
b: {script: x, rules: [{if: $CI_COMMIT_BRANCH !~ /^MAIN$/i}]}`,
			map[string]string{"tag": "a, b", "branch": "b", "mr": "b"}},
		{"rules in a reference", `
.default_rules: {rules: [{if: $CI_PIPELINE_SOURCE == "schedule", when: never}, {if: $CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH}]}
a: {script: x, rules: [!reference [.default_rules, rules]]}
b: {script: x, rules: [!reference [.default_rules, rules], {if: $CI_COMMIT_TAG}]}`,
			map[string]string{"main": "a, b", "web": "a, b", "tag": "b"}},
		{"workflow: no pipeline for branches", `
workflow: {rules: [{if: $CI_PIPELINE_SOURCE == "merge_request_event"}, {if: $CI_COMMIT_TAG}]}
a: {script: x, rules: [{when: always}]}`,
			map[string]string{"mr": "a/always", "tag": "a/always"}},
		{"workflow: never, else always", `
workflow: {rules: [{if: $CI_PIPELINE_SOURCE == "schedule", when: never}, {when: always}]}
a: {script: x}`,
			map[string]string{"branch": "a", "main": "a", "tag": "a", "web": "a", "mr": "a"}},
		{"workflow: a job that says nothing is in each pipeline", `
workflow: {rules: [{if: $CI_PIPELINE_SOURCE == "merge_request_event"}, {if: $CI_COMMIT_BRANCH == "main"}]}
a: {script: x}
b: {script: x, except: [schedules]}
c: {script: x, only: {variables: [$CI]}}
d: {script: x, only: [tags]}`,
			map[string]string{"mr": "a, b", "main": "a, b, c", "schedule": "a, c", "web": "a, b, c"}},
		{".pre and .post are no pipeline by themselves", `
a: {script: x, stage: .pre}
b: {script: x, rules: [{if: $CI_COMMIT_TAG}]}
c: {script: x, stage: .post, needs: [{job: b, optional: true}]}`,
			map[string]string{"tag": "a, b, c"}},
		{"only **/ stands for directories", `
a: {script: x, rules: [{exists: ["**"]}]}
b: {script: x, rules: [{exists: ["api/**"]}]}
c: {script: x, rules: [{exists: ["**.go"]}]}
d: {script: x, rules: [{exists: ["deep/**"]}]}
e: {script: x, rules: [{exists: ["{deep/**,none}"]}]}
f: {script: x, rules: [{exists: ["deep/**/*"]}]}
g: {script: x, rules: [{exists: ["{api,deep/er}/*.go"]}]}`,
			map[string]string{"branch": "a, b, f, g", "main": "a, b, f, g", "tag": "a, b, f, g", "mr": "a, b, f, g", "schedule": "a, b, f, g", "web": "a, b, f, g"}},
		{"workflow: variables", `
workflow: {rules: [{if: $CI_COMMIT_BRANCH == "main", variables: {WHERE: production}}, {when: always}]}
variables: {WHERE: test}
a: {script: x, rules: [{if: $WHERE == "production"}]}
b: {script: x, rules: [{if: $WHERE == "test"}]}`,
			map[string]string{"main": "a", "schedule": "a", "web": "a", "branch": "b", "tag": "b", "mr": "b"}},
		{"only names and kinds", `
a: {script: x, only: [main]}
b: {script: x, only: [tags]}
c: {script: x, only: [branches]}
d: {script: x, only: [merge_requests]}
e: {script: x, only: [schedules, web]}
f: {script: x, only: [/^v\d/, /^TOP/i]}
g: {script: x, only: [branches@group/project]}
h: {script: x, only: [branches@other/project]}
i: {script: x, only: [pushes]}
k: {script: x, only: [//@group/project]}`,
			map[string]string{"branch": "c, f, g, i, k", "main": "a, c, g, i, k", "tag": "b, f, i, k", "mr": "d", "schedule": "a, c, e, g, k", "web": "a, c, e, g, k"}},
		{"except", `
a: {script: x, except: [main]}
b: {script: x, only: [branches, tags], except: [tags]}
c: {script: x, except: {refs: [schedules], variables: [$CI_COMMIT_TAG =~ /^v/]}}
d: {script: x, except: {changes: [docs/*]}}`,
			map[string]string{"branch": "a, b, c", "main": "b, c", "tag": "a", "schedule": "b", "web": "b, c"}},
		{"only with everything", `
a: {script: x, only: {refs: [branches], variables: [$A, $CI_COMMIT_BRANCH == "main"], changes: [docs/**]}}
b: {script: x, only: {variables: [$CI_COMMIT_BRANCH == "main"]}}
c: {script: x, only: {kubernetes: active}}
d: {script: x, only: {refs: [merge_requests], changes: ["*.rb"]}}`,
			map[string]string{"main": "a, b", "schedule": "a, b", "web": "a, b"}},
		{"a part of a matrix has rules of its own", `
a: {script: x, parallel: {matrix: [{ON: [linux, mac]}]}, rules: [{if: $ON == "mac" && $CI_COMMIT_TAG}, {if: $ON == "linux"}]}`,
			map[string]string{"tag": "a: [linux], a: [mac]", "branch": "a: [linux]", "main": "a: [linux]", "mr": "a: [linux]", "schedule": "a: [linux]", "web": "a: [linux]"}},
		{"variables of the job count, what they refer to does not", `
a: {script: x, variables: {A: "yes"}, rules: [{if: $A == "yes"}]}
b: {script: x, variables: {A: $CI}, rules: [{if: $A == "true"}]}`,
			map[string]string{"branch": "a", "main": "a", "tag": "a", "mr": "a", "schedule": "a", "web": "a"}},
	} {
		for kind := range kinds {
			require.Equal(t, c.want[kind], chosen(t, kind, c.data, nil), "%s: %s", c.name, kind)
		}
	}
}

// Needs on jobs that are not in the pipeline, and needs of rules.
func TestNeedsOfRules(t *testing.T) {
	const data = `
lint: {stage: build, script: x, rules: [{if: $CI_COMMIT_TAG}]}
unit: {stage: build, script: x}
both: {stage: test, script: x, needs: [unit, {job: lint, optional: true}]}
rule: {stage: test, script: x, needs: [unit], rules: [{if: $CI_COMMIT_TAG, needs: [lint]}, {when: on_success}]}
`
	needs := func(kind, job string) string {
		p, err := optionsOf(kind).Parse("f.yml", []byte(data))
		require.NoError(t, err)
		var all []string
		for _, n := range p.Job(job).Needs {
			all = append(all, n.Job.Name)
		}
		return strings.Join(all, ", ")
	}
	require.Equal(t, "unit", needs("branch", "both"))
	require.Equal(t, "unit, lint", needs("tag", "both"))
	require.Equal(t, "unit", needs("branch", "rule"))
	require.Equal(t, "lint", needs("tag", "rule"))
	_, err := optionsOf("branch").Parse("f.yml", []byte(strings.Replace(data, ", optional: true", "", 1)))
	require.ErrorContains(t, err, `"both" needs "lint", which is not in this pipeline (rules: none of 1 matches): say optional: true`)
}

// Each line of the table is over the ones before it.
func TestPrecedenceOfVariables(t *testing.T) {
	const file = "variables: {A: file}\n"
	value := func(data string, set map[string]string) string {
		o := optionsOf("main")
		o.Variables["A"], o.Set = "predefined", set
		p, err := o.Parse("f.yml", []byte(data))
		require.NoError(t, err)
		return strings.Join(values(p.Jobs[0]), " ")
	}
	require.Equal(t, "A=file", value(file+"j: {script: x}", nil))
	require.Equal(t, "A=workflow", value(file+"workflow: {rules: [{when: always, variables: {A: workflow}}]}\nj: {script: x}", nil))
	const job = file + "j: {script: x, variables: {A: job}"
	require.Equal(t, "A=job", value(job+"}", nil))
	require.Equal(t, "A=cell CI_NODE_INDEX=1 CI_NODE_TOTAL=1", value(job+", parallel: {matrix: [{A: cell}]}}", nil))
	require.Equal(t, "A=rule", value(job+", rules: [{when: always, variables: {A: rule}}]}", nil))
	require.Equal(t, "A=set", value(job+", rules: [{when: always, variables: {A: rule}}]}", map[string]string{"A": "set"}))
	require.Equal(t, "", chosen(t, "main", job+", rules: [{if: $A == \"job\"}]}", map[string]string{"A": "set"}), "rules see what was set")
}

// A fault in rules is told, at its place.
func TestWrongRules(t *testing.T) {
	for data, want := range map[string]string{
		`j: {script: x, rules: {if: $A}}`:                               "1:23: rules should be a list of rules",
		`j: {script: x, rules: [{if: $A == main}]}`:                     `1:29: rules:if: "$A == main": main is no part of an expression`,
		`j: {script: x, rules: [{if: true}]}`:                           "1:29: rules:if should be an expression",
		`j: {script: x, rules: [{iff: $A}]}`:                            `there is no keyword "iff" in rules; did you mean "if"?`,
		`j: {script: x, rules: [{when: delayed}]}`:                      "when: delayed needs start_in",
		`j: {script: x, when: delayed, start_in: 1s, rules: []}`:        "1:45: rules cannot be used together with start_in",
		`j: {script: x, rules: [{exists: {paths: [a], project: g/p}}]}`: "rules:exists:project: the files of another project are not known",
		`j: {script: x, rules: [{exists: {paths: [a], ref: v1}}]}`:      "rules:exists:ref: only the files that are checked out are known",
		`j: {script: x, only: main}`:                                    `1:22: only should be a list of refs, or a mapping of refs, variables and changes, not "main"`,
		`j: {script: x, trigger: a/b}`:                                  "1:16: trigger cannot be used together with script",
		`j: {script: x, rules: [{when: sometimes}]}`:                    "rules:when should be on_success",
		`j: {script: x, only: [/(/]}`:                                   `only: "/(/" is no regular expression`,
		`j: {script: x, only: [a], rules: [{when: always}]}`:            "rules cannot be used together with only or except",
		`{j: {script: x}, workflow: {rules: [{when: manual}]}}`:         "workflow:rules:when should be always or never",
		`{j: {script: x}, workflow: {rulez: []}}`:                       `there is no keyword "rulez" in workflow`,
		`j: {script: x, only: {variables: [$A ==]}}`:                    "only:variables:",
		`j: {script: x, rules: [{changes: {path: [a]}}]}`:               `there is no keyword "path" in rules:changes; did you mean "paths"?`,
	} {
		require.Contains(t, wrong(t, data).Error(), want, data)
	}
}

// A commit to compare with that there is not is an error: else everything would count
// as changed, and a job run that GitLab does not run.
func TestACommitToCompareWithIsThere(t *testing.T) {
	const data = `j: {script: x, rules: [{changes: {paths: [old.go], compare_to: $TO}}], variables: {TO: nowhere}}`
	o := optionsOf("branch")
	o.Changed = func(string) ([]string, bool) { return nil, false }
	o.HasCommit = func(name string) bool { return name == "there" }
	_, err := o.Parse("f.yml", []byte(data))
	require.EqualError(t, err, `f.yml:1:64: changes:compare_to: there is no branch, tag or commit "nowhere" here`)
	_, err = o.Parse("f.yml", []byte(strings.Replace(data, "nowhere", "there", 1)))
	require.NoError(t, err)
}

// A pipeline without jobs is one, and says why.
func TestWhyThereIsNoPipeline(t *testing.T) {
	p, err := Parse("f.yml", []byte("j: {script: x, when: never}\nk: {script: x, only: [tags]}"))
	require.NoError(t, err)
	require.Empty(t, p.Jobs)
	require.Equal(t, "rules, only or when keep every job out for the branch local (push)", p.Why)
	require.Equal(t, []string{"when: never", "only: the branch local (push) is none of tags"}, []string{p.Left[0].Why, p.Left[1].Why})
}
