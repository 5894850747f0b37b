package pipeline

// unsupportedGlobally are keywords that GitLab has at the top of a file, and
// what to do without them.
var unsupportedGlobally = map[string]string{
	"include":  "copy what the job needs into this file; within one file there are extends, anchors and !reference",
	"workflow": "the pipeline runs whenever it is called; take it out",
	"image":    "jobs run on this machine, not in a container; take it out, and see that what the scripts call is installed",
	"cache":    "the work directory of a job is its own; take it out, or keep the files outside of it",
	"spec":     "inputs are not supported; write the values into the file, or use variables",
	"types":    "it is an old name of stages; rename it",
}

// unsupportedInJobs are keywords that GitLab has in jobs, and what to do
// without them.
var unsupportedInJobs = map[string]string{
	"image":               unsupportedGlobally["image"],
	"cache":               unsupportedGlobally["cache"],
	"tags":                "every job runs on this machine; take it out",
	"rules":               "all jobs run, whatever has changed where; take it out, or use when: manual or when: never",
	"only":                "all jobs run, whatever has changed where; take it out, or use when: manual or when: never",
	"except":              "all jobs run, whatever has changed where; take it out, or use when: manual or when: never",
	"trigger":             "there is no other pipeline to start; call the runner in a script instead",
	"environment":         "there is no server that knows environments; take it out",
	"release":             "there is no server to release on; call what releases in the script",
	"pages":               "there is no server to publish on; call what publishes in the script",
	"publish":             "there is no server to publish on; call what publishes in the script",
	"coverage":            "nothing reads it; take it out",
	"resource_group":      "pipelines do not know of each other; take it out, or lock with flock in the script",
	"secrets":             "there is no vault; put secrets into the environment of the runner",
	"id_tokens":           "there is no server that issues tokens; take it out",
	"identity":            "there is no server that issues tokens; take it out",
	"hooks":               "nothing is fetched that it could hook into; use before_script",
	"run":                 "steps are not supported; use script",
	"inputs":              "inputs are not supported; use variables",
	"manual_confirmation": "nobody is asked; take it out",
	"dast_configuration":  "there is no server that scans; take it out",
	"type":                "it is an old name of stage; rename it",
}
