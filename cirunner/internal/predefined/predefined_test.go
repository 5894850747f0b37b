//go:build unix

package predefined

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// repository makes one with two commits; the second changes b and adds c/d.
func repository(t *testing.T) string {
	dir := t.TempDir()
	git := func(args ...string) {
		cmd := exec.Command("git", append([]string{"-c", "user.name=A B", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"}, args...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	git("init", "-q", "-b", "main")
	write("a", "1")
	write("b", "1")
	git("add", ".")
	git("commit", "-q", "-m", "first")
	git("checkout", "-q", "-b", "Feature/One")
	write("b", "2")
	write("c/d", "1")
	git("add", ".")
	git("commit", "-q", "-m", "second\n\nwith more")
	git("remote", "add", "origin", "git@gitlab.example.com:Group/Sub/proj.git")
	return dir
}

func TestVariablesOfABranch(t *testing.T) {
	r := New(t.Context(), repository(t), Wish{})
	for name, want := range map[string]string{
		"CI": "true", "GITLAB_CI": "true", "CI_PIPELINE_SOURCE": "push", "CI_DEFAULT_BRANCH": "main",
		"CI_COMMIT_BRANCH": "Feature/One", "CI_COMMIT_REF_NAME": "Feature/One", "CI_COMMIT_REF_SLUG": "feature-one",
		"CI_COMMIT_TITLE": "second", "CI_COMMIT_DESCRIPTION": "with more",
		"CI_PROJECT_PATH": "Group/Sub/proj", "CI_PROJECT_NAME": "proj", "CI_PROJECT_NAMESPACE": "Group/Sub", "CI_PROJECT_ROOT_NAMESPACE": "Group",
		"CI_REGISTRY_IMAGE": "registry.gitlab.example.com/group/sub/proj", "CI_SERVER_HOST": "gitlab.example.com",
		"CI_PROJECT_URL": "https://gitlab.example.com/Group/Sub/proj",
	} {
		require.Equal(t, want, r.Variables[name], name)
	}
	require.NotContains(t, r.Variables, "CI_COMMIT_TAG")
	require.Len(t, r.Variables["CI_COMMIT_SHA"], 40)
	files, known := r.Changed("")
	require.True(t, known)
	require.Equal(t, []string{"b", "c/d"}, files)
	require.Equal(t, []string{"a", "b", "c/d"}, r.Files())
}

func TestVariablesOfATagAndAMergeRequest(t *testing.T) {
	dir := repository(t)
	tag := New(t.Context(), dir, Wish{Tag: "v1.2"})
	require.Equal(t, "v1.2", tag.Variables["CI_COMMIT_TAG"])
	require.Equal(t, "v1.2", tag.Variables["CI_COMMIT_REF_NAME"])
	require.NotContains(t, tag.Variables, "CI_COMMIT_BRANCH")
	_, known := tag.Changed("")
	require.False(t, known, "everything has changed for a tag")

	merge := New(t.Context(), dir, Wish{Merge: "main"})
	require.Equal(t, "merge_request_event", merge.Variables["CI_PIPELINE_SOURCE"])
	require.Equal(t, "Feature/One", merge.Variables["CI_MERGE_REQUEST_SOURCE_BRANCH_NAME"])
	require.Equal(t, "main", merge.Variables["CI_MERGE_REQUEST_TARGET_BRANCH_NAME"])
	require.NotContains(t, merge.Variables, "CI_COMMIT_BRANCH")
	files, known := merge.Changed("")
	require.True(t, known)
	require.Equal(t, []string{"b", "c/d"}, files)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "new"), nil, 0o600))
	files, known = New(t.Context(), dir, Wish{}).Changed("HEAD")
	require.True(t, known)
	require.Equal(t, []string{"new"}, files, "what is not committed has changed, too")
	_, known = merge.Changed("nowhere")
	require.False(t, known)
	for name, want := range map[string]bool{"main": true, "refs/heads/main": true, "HEAD~1": true, "nowhere": false, "origin/main": false} {
		require.Equal(t, want, merge.HasCommit(name), name)
	}
}

// A git that fails has not said that nothing has changed.
func TestGitInTrouble(t *testing.T) {
	dir := repository(t)
	r := New(t.Context(), dir, Wish{})
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".git", "index"), []byte("torn"), 0o600))
	files, known := r.Changed("HEAD")
	require.False(t, known, "%s", files)
}

func TestWithoutGit(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x"), nil, 0o600))
	r := New(t.Context(), dir, Wish{})
	require.Equal(t, Local, r.Variables["CI_COMMIT_BRANCH"])
	require.NotEqual(t, r.Variables["CI_DEFAULT_BRANCH"], r.Variables["CI_COMMIT_BRANCH"])
	require.Equal(t, "local/"+filepath.Base(dir), r.Variables["CI_PROJECT_PATH"])
	require.Equal(t, []string{"x"}, r.Files())
	_, known := r.Changed("")
	require.False(t, known)
}

func TestAddressesOfRepositories(t *testing.T) {
	for origin, want := range map[string][2]string{
		"git@gitlab.com:a/b.git":                {"gitlab.com", "a/b"},
		"https://gitlab.com/a/b/c.git":          {"gitlab.com", "a/b/c"},
		"https://user:word@gitlab.com:8443/a/b": {"gitlab.com", "a/b"},
		"ssh://git@host:22/a/b":                 {"host", "a/b"},
		"/srv/git/a.git":                        {},
		"../other":                              {},
		"":                                      {},
	} {
		host, full := address(origin)
		require.Equal(t, want, [2]string{host, full}, origin)
	}
}

func TestSlugsOfEnvironments(t *testing.T) {
	for name, want := range map[string]string{
		"production":                       "production",
		"review/My_App":                    `^review-my-app-[0-9a-f]{6}$`,
		"1":                                `^env-1-[0-9a-f]{6}$`,
		"":                                 `^env-[0-9a-f]{6}$`,
		"review/a-branch-with-a-long-name": `^review-a-branch-w?-[0-9a-f]{6}$`,
	} {
		slug := EnvironmentSlug(name)
		require.Regexp(t, want, slug, name)
		require.LessOrEqual(t, len(slug), 24)
	}
	require.NotEqual(t, EnvironmentSlug("review/a_b"), EnvironmentSlug("review/a.b"))
}
