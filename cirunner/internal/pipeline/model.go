// Package pipeline has the values that a pipeline file means: jobs, with what they
// wait for and what they get. Package parse makes them.
package pipeline

import (
	"fmt"
	"regexp"
	"slices"
	"time"
)

// A Pipeline is what a file describes, with everything resolved: defaults,
// extends, parallel and needs. Nothing in it is looked up by name any more.
type Pipeline struct {
	// File is the name under which the file was parsed.
	File string

	// Name is what workflow:name calls the pipeline, with its variables replaced; empty where it does not.
	Name string

	// Stages are the stages in their order, with .pre first and .post last
	// where a job is in them. A stage may be without jobs.
	Stages []string

	// Jobs are the jobs in the order of the file; a parallel job stands there
	// once for each of its parts, in their order.
	Jobs []*Job

	// Left are the jobs of the file that are not in the pipeline, in its order.
	Left []*Left

	// Why says why Jobs is empty; it is empty if there are jobs.
	Why string

	// Warnings are what the file says and cirunner passes over, in its order.
	Warnings []Warning
}

// Job returns the job of a name, or nil.
func (p *Pipeline) Job(name string) *Job {
	i := slices.IndexFunc(p.Jobs, func(j *Job) bool { return j.Name == name })
	if i < 0 {
		return nil
	}
	return p.Jobs[i]
}

// A Job is one run of one script.
type Job struct {
	// Name is unique in the pipeline: "test", "test 2/3" for a part of a
	// parallel job, "test: [a, b]" for a part of a matrix.
	Name string

	// Key is the name in the file, which the parts of a parallel job share.
	Key string

	// Index is the place of the job in Pipeline.Jobs.
	Index int

	// Stage is one of Pipeline.Stages, StageIndex its place there.
	Stage      string
	StageIndex int

	// Why says what has put the job into the pipeline; it is empty for a job
	// that every pipeline has.
	Why string

	// Pos is where the job's name stands in the file.
	Pos Pos

	// Before, Script and After are the commands, each a piece of bash, maybe
	// of several lines. Before and Script are one script for one shell; After
	// is run by a shell of its own. Script is never empty.
	Before, Script, After []string

	// Variables are those of the file and of the job, a name once: the job's
	// value where both have one. They stand in the order in which they may be
	// exported. Values are as written: what refers to another variable has yet
	// to be expanded.
	Variables []Variable

	// Needs are the jobs this job waits for, when the file says so; nil means
	// every job of the earlier stages, and an empty slice means none. Needs of
	// a job of the file that was parallel are one for each part.
	Needs []Need

	// WaitsFor are the jobs that must have ended before this one may start, in
	// the order of the pipeline: those of Needs, or those of every earlier
	// stage. When decides by their outcomes.
	WaitsFor []*Job

	// Fetch are the jobs whose artifacts are laid into this job's directory
	// before it starts, in the order of the pipeline; all are in WaitsFor.
	Fetch []*Job

	// Parallel tells a part of a parallel job from the others: part Node of
	// Nodes, counted from 1. Both are 0 in a job that is not parallel.
	// CI_NODE_INDEX and CI_NODE_TOTAL are among the Variables.
	Node, Nodes int

	// Cell are the variables of a part of a matrix, as the matrix has them; none in any other job.
	Cell []Variable

	// Timeout bounds Before and Script together; 0 where the file says none.
	Timeout time.Duration

	Retry        Retry
	AllowFailure AllowFailure

	// When says on which outcomes of WaitsFor the job starts. A job with Never
	// is not in a Pipeline.
	When When

	// Asked says that Only has taken the job because it is named, or needed by one that is: if it is
	// manual it runs.
	Asked bool

	// StartIn is how long a job with When Delayed waits before it starts,
	// counted from when it might have started; 0 otherwise.
	StartIn time.Duration

	// Interruptible says that the job may be given up halfway when the
	// pipeline is not wanted any more.
	Interruptible bool

	// Coverage finds in the output how much the tests have covered; nil where the file
	// does not say.
	Coverage *regexp.Regexp

	// ResourceGroup is shared by jobs that do not run at the same time; empty for none.
	// It may hold variables.
	ResourceGroup string

	// Environment is where the job deploys to; its name is empty if it does not. Its
	// texts may hold variables.
	Environment Environment

	// Parent is the job that starts the pipeline that the job is in: a child pipeline. It is
	// nil in the pipeline itself.
	Parent *Job

	// Depend says that whoever waits for the job waits for the pipeline that it starts.
	Depend bool

	// Made is the child pipeline that the job starts, where jobs make its files; nil for any other.
	Made *Made

	// Missing are variables that the scripts need and only a server issues.
	Missing []string

	Artifacts Artifacts
	Caches    []Cache // none unless caches are kept
	Services  []Service
	Watchdog  Watchdog

	// Image is that of the container that the job runs in; nil for this machine.
	// ImageServices are containers beside it: there are none without it.
	Image         *Image
	ImageServices []ImageService
}

// Left is a job of the file that is not in the pipeline.
type Left struct {
	Name, Stage string
	Why         string
	Pos         Pos
}

// A Need is a job that another job waits for.
type Need struct {
	Job *Job

	// Artifacts says that the needed job's artifacts are fetched.
	Artifacts bool

	// Optional says that the file would be right without the needed job.
	Optional bool

	Pos Pos
}

// When says on which outcomes of the jobs before it a job starts.
type When string

const (
	OnSuccess When = "on_success" // all have succeeded, or may fail
	OnFailure When = "on_failure" // one has failed that may not
	Always    When = "always"     // whatever they did
	Manual    When = "manual"     // as OnSuccess, when somebody asks for it
	Delayed   When = "delayed"    // as OnSuccess, after Job.StartIn
	Never     When = "never"      // not at all
)

// An Environment is what a job says of where it deploys to. Nothing here keeps a
// record of it, but scripts read it from their variables.
type Environment struct {
	Name, URL, Action, Tier string
}

// Artifacts are the files of a job that later jobs get.
type Artifacts struct {
	// Paths and Exclude are patterns relative to the job's directory, in the
	// syntax of filepath.Match with ** for any number of directories. A path
	// that is a directory stands for all that is in it. They are never
	// absolute and never lead out of the directory.
	Paths, Exclude []string

	// Untracked says that files which git does not track, and has not before the
	// job, are kept as well.
	Untracked bool

	// When is OnSuccess, OnFailure or Always: the outcome of the job with
	// which its artifacts are kept.
	When When

	// Dotenv are patterns of files with variables for the jobs that get the artifacts,
	// JUnit those of files with the results of tests. When does not count for them.
	Dotenv, JUnit []string
}

// Any reports whether there is anything for later jobs.
func (a *Artifacts) Any() bool { return len(a.Paths) > 0 || a.Untracked || len(a.Dotenv) > 0 }

// A Service is a command that runs beside a job: started before it, watched
// while it runs, stopped after it.
type Service struct {
	// Name is unique among the services of the job.
	Name string

	// Command is a piece of bash. It is expected to run until it is stopped.
	Command string

	// Variables are the job's, with those of the service over them.
	Variables []Variable

	// Address is host:port, which answers once the service is ready; empty for
	// a service that is ready when it is started.
	Address string

	// Timeout bounds the time until Address answers.
	Timeout time.Duration

	// Health is how the service is watched while the job runs.
	Health Health

	Pos Pos
}

// Health says how a service is watched while its job runs. The end of its process is always noticed.
type Health struct {
	// Command is a piece of bash that succeeds while the service is well.
	// Where it is empty, Address is dialled.
	Command string

	// Interval is the time from the end of one check to the next; 0 means that
	// only the process is watched.
	Interval time.Duration

	// Timeout bounds one check.
	Timeout time.Duration

	// Retries is how many checks in a row may fail before the service counts
	// as ill.
	Retries int
}

// Watchdog ends a job that hangs.
type Watchdog struct {
	// Heartbeat is a file relative to the job's directory that the script must
	// touch at least every HeartbeatWithin; empty for none. The time counts
	// from the start of the script.
	Heartbeat       string
	HeartbeatWithin time.Duration

	// Silence is how long the job may print nothing; 0 for ever.
	Silence time.Duration

	// Grace is the time from TERM to KILL when the job is stopped; negative
	// where the file does not say.
	Grace time.Duration
}

// A Pos is a place in a file. Lines and columns count from 1, columns in
// characters.
type Pos struct {
	File         string
	Line, Column int
}

// String returns the file, the line and the column, as compilers write them.
func (p Pos) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }
