package draft

// A keyword that GitLab has and cirunner has not comes in two kinds. A keyword that a job can do
// without is ignored, with one warning for each keyword. A keyword that changes which script runs
// cannot be passed over, and is an error.

// UnsupportedGlobally are keywords at the top of a file that are errors, and what
// to do without them.
var UnsupportedGlobally = map[string]string{
	"spec":  "it is for a header: put a line of --- below it, and the jobs below that",
	"types": "it is an old name of stages; rename it",
}

// UnsupportedInJobs are keywords of jobs that are errors, and what to do without
// them.
var UnsupportedInJobs = map[string]string{
	"inputs": "the inputs of a job are not supported, and scripts would have ${{ job.inputs.NAME }} as it is written; use variables",
	"run":    "steps are not supported; use script",
	"type":   "it is an old name of stage; rename it",
}

const (
	NoImage  = "with -host jobs run on this machine, not in a container; what the scripts call must be installed"
	NoTags   = "every job runs on this machine"
	noCache  = "each job begins with a copy of the project; -cache DIR keeps the files of caches"
	noServer = "there is no server that would read it"
	noPages  = "nothing is published"
	NoRecord = "nothing keeps a record of it, or stops it; scripts have its variables, CI_ENVIRONMENT_NAME and the like"
	noOther  = "nothing is taken from the pipeline of another project, or another one of this, and the job does not wait for it: give the job the files it lacks"
	noTokens = "nothing issues tokens or secrets; give what the script needs with -variables or -var, or in the environment of the runner"
)

// IgnoredInJobs are keywords of jobs that mean nothing here.
var IgnoredInJobs = map[string]string{
	"image":               NoImage,
	"tags":                NoTags,
	"environment":         NoRecord,
	"release":             "nothing is released",
	"pages":               noPages,
	"publish":             noPages,
	"secrets":             noTokens,
	"id_tokens":           noTokens,
	"identity":            noTokens,
	"hooks":               "nothing is fetched that it could hook into",
	"manual_confirmation": "nobody is asked",
	"dast_configuration":  noServer,
}

// IgnoredInArtifacts are what only a server can do.
var IgnoredInArtifacts = map[string]string{
	"expose_as": noServer,
	"public":    noServer,
	"access":    noServer,
}

// ignoredInReports are the reports that only a server shows.
var ignoredInReports = map[string]string{}

func init() {
	for _, name := range []string{
		"accessibility", "annotations", "api_fuzzing", "browser_performance", "cluster_image_scanning", "codequality",
		"container_scanning", "coverage_fuzzing", "coverage_report", "cyclonedx", "dast", "dependency_scanning", "license_scanning",
		"load_performance", "lsif", "metrics", "performance", "repository_xray", "requirements", "requirements_v2", "sast", "sarif",
		"secret_detection", "terraform",
	} {
		ignoredInReports[name] = noServer
	}
}

// ignoredInNeeds are needs of what is not in the file.
var ignoredInNeeds = map[string]string{
	"pipeline": noOther,
	"project":  noOther,
	"ref":      noOther,
}
