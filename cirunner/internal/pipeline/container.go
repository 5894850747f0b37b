package pipeline

// An Image is what the container of a job or of a service is made of. Texts may hold
// variables.
type Image struct {
	Name string

	// Entrypoint takes the place of the image's own; nil where the file does not say. A
	// list of one empty text is none.
	Entrypoint []string

	// Pull is PullMissing, PullAlways or PullNever.
	Pull Pull

	User, Platform string // empty where the file does not say
}

// Pull says when an image is fetched.
type Pull string

const (
	PullMissing Pull = "if-not-present"
	PullAlways  Pull = "always"
	PullNever   Pull = "never"
)

// An ImageService is a container that runs beside that of a job. Services that are
// commands are of the type [Service].
type ImageService struct {
	Image
	Aliases   []string   // names by which the job reaches it; at least one
	Command   []string   // in place of the image's own; empty for that
	Variables []Variable // the job's, with those of the service over them
	Pos       Pos
}

// A Cache are files that a job gets from the last that has kept them, if caches
// are kept at all.
type Cache struct {
	// Key names the cache; it may hold variables. KeyFiles are files whose content
	// makes the key in its place, after Key and a dash if that is given.
	Key      string
	KeyFiles []string

	// Fallback are keys that are tried, one after the other, if there is no cache
	// of Key.
	Fallback []string

	// Paths are patterns as those of Artifacts.
	Paths []string

	// Policy is CachePull, CachePush or CachePullPush: whether the files are fetched before the job, and
	// kept after it. It may be a variable.
	Policy string

	// When is OnSuccess, OnFailure or Always: the outcome with which files are
	// kept.
	When When
}

// Policies of a cache.
const (
	CachePull     = "pull"
	CachePush     = "push"
	CachePullPush = "pull-push"
)

// IsPolicy reports whether a text is one of the policies.
func IsPolicy(s string) bool { return s == CachePull || s == CachePush || s == CachePullPush }
