package parse

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// GitLab takes these files.
func TestWhatGitLabTakes(t *testing.T) {
	for name, data := range map[string]string{
		"a report of code intelligence": "j: {script: x, artifacts: {reports: {lsif: dump.lsif}}}",
		"a failure of a server":         "j: {script: x, retry: {max: 1, when: [runner_provisioning_timeout, runner_interrupted]}}",
		"a status that is mirrored":     "j: {needs: {pipeline: group/other}}\nk: {needs: [{pipeline: $UP}]}",
		"a policy that is a variable":   "j: {script: x, cache: {paths: [a], policy: $POLICY}}",
		"tags in a list":                "j: {script: x, tags: [a, [b, c]]}",
		"pages that are switched on":    "j: {script: x, pages: true}\nk: {script: x, pages: {path_prefix: a, expire_in: never, publish: p}}",
		"a name in a matrix":            "j: {script: x, parallel: {matrix: [{go-version: ['1.26', '1.27']}]}}",
		"keywords without a value":      "j: {script: x, rules: ~, only: ~, cache: ~, needs: ~}",
	} {
		for _, caches := range []bool{false, true} {
			_, err := Options{Cache: caches, Containers: caches}.Parse("f.yml", []byte(data))
			assert.NoError(t, err, name)
		}
	}
}

// A variable without a value is an empty one, also where it is given by parts.
func TestAVariableWithoutAValueIsEmpty(t *testing.T) {
	p := right(t, "variables:\n  A:\n  B: {description: which}\nj: {script: x, variables: {C: ~, D: {value: ~}}}")
	require.Equal(t, []string{"A=", "B=", "C=", "D="}, values(p.Jobs[0]))
	require.Empty(t, p.Warnings)
}

// Stages may stand in lists, as references make them.
func TestStagesInLists(t *testing.T) {
	p := right(t, "stages: [one, [two, [three]], !reference [.more, stages]]\n.more: {stages: [four]}\nj: {stage: three, script: x}")
	require.Equal(t, []string{"one", "two", "three", "four"}, p.Stages)
}

// GitLab refuses these files; whoever runs one here would learn that only there.
func TestWhatGitLabRefuses(t *testing.T) {
	job := func(more string) string { return "b: {stage: build, script: x}\nj: {script: x, " + more + "}" }
	for data, want := range map[string]string{
		job("needs: b"):                                          "needs should be a list",
		job("dependencies: b"):                                   "dependencies should be a list of texts",
		job("artifacts: {paths: a}"):                             "artifacts:paths should be a list of texts",
		job("artifacts: {paths: [a], exclude: b}"):               "artifacts:exclude should be a list of texts",
		job("cache: {paths: a}"):                                 "cache:paths should be a list of texts",
		job("cache: {key: {files: a}, paths: [a]}"):              "cache:key:files should be a list of texts",
		job("cache: {fallback_keys: a, paths: [a]}"):             "cache:fallback_keys should be a list of texts",
		job("image: {name: a, entrypoint: b}"):                   "image:entrypoint should be a list of texts",
		job("rules: [{changes: a}]"):                             "rules:changes should be a list of texts",
		job("rules: [{changes: {paths: a}}]"):                    "rules:changes:paths should be a list of texts",
		job("rules: [{exists: {paths: a}}]"):                     "rules:exists:paths should be a list of texts",
		job("only: {refs: main}"):                                "only:refs should be a list of texts",
		job("except: {variables: $A}"):                           "except:variables should be a list of texts",
		job("only: {changes: a}"):                                "only:changes should be a list of texts",
		job("tags: docker"):                                      "tags should be a list of texts",
		job("interruptible: 'true'"):                             "interruptible should be true or false",
		job("parallel: {matrix: [{A: [a, ~]}]}"):                 "parallel:matrix: A has an empty value",
		"stages: test\n" + job("when: always"):                   "stages should be a list of texts",
		"variables: {A: {value: a, options: a}}\nj: {script: x}": "A:options should be a list of texts",
		"default: {environment: prod}\nj: {script: x}":           "environment cannot be in default",
		"default: {release: {tag_name: a}}\nj: {script: x}":      "release cannot be in default",
		"j: {script: x, inherit: {default: [secrets]}}":          `"secrets" cannot be in default`,
		"j: {trigger: {project: a/b, include: c.yml}}":           "trigger:include and trigger:project",
		"j: {trigger: {include: [{local: a.yml}, {local: b.yml}, {local: c.yml}, {local: d.yml}]}}": "trigger:include has 4 files: it may have 3",
		"include: {local: a.yml, remote: https://x.test/b.yml}\nj: {script: x}":                     "an entry of include has one of local, remote",
		"include: {ref: main}\nj: {script: x}":                                                      "an entry of include has one of local, remote",
		job("rules: [{changes: [" + strings.Repeat("a, ", 51) + "]}]"):                              "rules:changes has 51 patterns: it may have 50",
		job("rules: [{exists: [" + strings.Repeat("a, ", 51) + "]}]"):                               "rules:exists has 51 patterns: it may have 50",
	} {
		_, err := Options{Cache: true, Containers: true, Dir: t.TempDir()}.Parse("f.yml", []byte(data))
		assert.ErrorContains(t, err, want, data)
	}
}

// A keyword that means nothing in a run is read all the same: a keyword that GitLab does not know is an error there, too, and one that it
// knows is not told of twice.
func TestWhatIsPassedOverIsRead(t *testing.T) {
	for data, want := range map[string]string{
		"j: {script: x, cache: {pahts: [a]}}":                               `1:24: there is no keyword "pahts" in cache; did you mean "paths"?`,
		"cache: {keys: a}\nj: {script: x}":                                  `there is no keyword "keys" in cache`,
		"default: {cache: [{policy: pul}]}\nj: {script: x}":                 "cache:policy should be pull, push or pull-push",
		"j: {script: x, image: {nme: a}}":                                   `there is no keyword "nme" in image`,
		"default: {image: {name: a, pull_policy: allways}}\nj: {script: x}": "image:pull_policy should be",
		"j: {script: x, services: [{name: a, alias: b, cmd: [c]}]}":         `there is no keyword "cmd" in services`,
		"j: {script: x, hooks: {pre_get_source_script: a}}":                 `there is no keyword "pre_get_source_script" in hooks`,
		"j: {script: x, pages: {prefix: a}}":                                `there is no keyword "prefix" in pages`,
		"j: {script: x, id_tokens: {A: {audience: b}}}":                     `there is no keyword "audience" in id_tokens:A`,
		"j: {script: x, secrets: {A: {valut: b}}}":                          `there is no keyword "valut" in secrets:A; did you mean "vault"?`,
		"j: {script: x, secrets: [a]}":                                      "secrets should be a mapping",
	} {
		_, err := Parse("f.yml", []byte(data))
		assert.ErrorContains(t, err, want, data)
	}
	p := right(t, "j: {script: x, cache: {paths: [a, /b], untracked: true}, image: {name: a, pull_policy: [never, always]}, services: [{name: a, alias: b, kubernetes: {}}]}")
	var keywords []string
	for _, w := range p.Warnings {
		keywords = append(keywords, w.Keyword)
	}
	require.Equal(t, []string{"cache", "image", "a service as an image"}, keywords)
}
