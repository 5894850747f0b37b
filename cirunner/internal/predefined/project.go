//go:build unix

package predefined

import (
	"net/url"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/workdir"
)

// ask returns what git says; nothing, if it fails.
func (r *Run) ask(args ...string) string {
	out, _ := workdir.Git(r.ctx, r.dir, args...)
	return out
}

// defaultBranch is that of the origin, or else main or master if there is one.
func (r *Run) defaultBranch() string {
	if head := r.ask("symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD"); head != "" {
		return strings.TrimPrefix(head, "origin/")
	}
	for _, name := range []string{"main", "master"} {
		if r.ask("rev-parse", "--verify", "--quiet", "refs/heads/"+name) != "" {
			return name
		}
	}
	return "main"
}

// project are the variables of the project and of its server, by the address of
// the origin. A project without one is local/NAME of the server gitlab.localhost,
// which does not exist.
func (r *Run) project() map[string]string {
	host, full := address(r.ask("config", "--get", "remote.origin.url"))
	if full == "" {
		host, full = "gitlab.localhost", "local/"+filepath.Base(r.dir)
	}
	namespace, name := path.Split(full)
	namespace = strings.TrimSuffix(namespace, "/")
	root, _, _ := strings.Cut(namespace, "/")
	server := "https://" + host
	return map[string]string{
		"CI_PROJECT_NAME": name, "CI_PROJECT_TITLE": name, "CI_PROJECT_PATH": full, "CI_PROJECT_PATH_SLUG": Slug(full),
		"CI_PROJECT_NAMESPACE": namespace, "CI_PROJECT_NAMESPACE_SLUG": Slug(namespace), "CI_PROJECT_ROOT_NAMESPACE": root,
		"CI_PROJECT_ID": "1", "CI_PROJECT_VISIBILITY": "private",
		"CI_PROJECT_URL": server + "/" + full, "CI_REPOSITORY_URL": server + "/" + full + ".git",
		"CI_SERVER_HOST": host, "CI_SERVER_FQDN": host, "CI_SERVER_URL": server, "CI_SERVER_PROTOCOL": "https", "CI_SERVER_PORT": "443",
		"CI_SERVER_NAME": "GitLab", "CI_API_V4_URL": server + "/api/v4", "CI_API_GRAPHQL_URL": server + "/api/graphql",
		"CI_REGISTRY": "registry." + host, "CI_REGISTRY_IMAGE": "registry." + host + "/" + strings.ToLower(full),
		"CI_PAGES_DOMAIN": "pages." + host, "CI_TEMPLATE_REGISTRY_HOST": "registry." + host,
		"CI_DEPENDENCY_PROXY_SERVER":             host + ":443",
		"CI_DEPENDENCY_PROXY_GROUP_IMAGE_PREFIX": host + ":443/" + strings.ToLower(root) + "/dependency_proxy/containers",
		"CI_RUNNER_EXECUTABLE_ARCH":              runtime.GOOS + "/" + runtime.GOARCH,
		"GITLAB_USER_NAME":                       r.ask("config", "--get", "user.name"),
		"GITLAB_USER_EMAIL":                      r.ask("config", "--get", "user.email"),
		"GITLAB_USER_LOGIN":                      Slug(r.ask("config", "--get", "user.name")),
	}
}

// address returns host and path of a repository: of a URL, or of user@host:path.
// Both are empty if it is a directory.
func address(origin string) (host, full string) {
	if u, err := url.Parse(origin); err == nil && u.Host != "" {
		host, full = u.Hostname(), u.Path
	} else if before, after, found := strings.Cut(origin, ":"); found && !strings.Contains(before, "/") {
		host, full = before[strings.LastIndex(before, "@")+1:], after
	}
	full = strings.Trim(strings.TrimSuffix(full, ".git"), "/")
	if host == "" || !strings.Contains(full, "/") {
		return "", ""
	}
	return host, full
}
