package parse

import (
	"testing"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline/draft"
	"github.com/stretchr/testify/require"
)

// Warnings are one for each keyword, in the order of the file, with the number of
// places; what many jobs inherit stands in one place.
func TestWarningsAreGrouped(t *testing.T) {
	const data = `default: {image: one}
.base: {tags: [a]}
a: {extends: .base, script: x, image: two}
b: {extends: .base, script: x, coverage: /x/, environment: prod}
c: {script: x, image: three, tags: [b]}
`
	p := right(t, data)
	var lines []string
	for _, w := range p.Warnings {
		lines = append(lines, w.String())
	}
	require.Equal(t, []string{
		"f.yml:1:11: warning: image (3 times, here first): " + draft.NoImage,
		"f.yml:2:9: warning: tags (2 times, here first): " + draft.NoTags,
		"f.yml:4:47: warning: environment: " + draft.NoRecord,
	}, lines)
	require.Len(t, wrong(t, data).Problems, 6, "for a strict parser each place is wrong")
}

// A job that only triggers another pipeline does nothing, whatever the file gives to
// all jobs; those that need it go on.
func TestATriggerDoesNothing(t *testing.T) {
	p := right(t, `
default: {before_script: [docker login], after_script: [docker logout], services: [{name: web, command: serve}]}
down: {stage: build, trigger: {project: group/other}}
after: {needs: [down], script: x}
`)
	down := p.Job("down")
	require.Equal(t, []string{"echo 'no other pipeline is started here'"}, down.Script)
	require.Empty(t, down.Before)
	require.Empty(t, down.After)
	require.Empty(t, down.Services)
	require.Equal(t, "trigger", p.Warnings[0].Keyword)
}

// An image's command is a list of arguments; a service's is a list of commands, of which
// none begins with a dash. The words of the one are never run as the other.
func TestServicesThatAreImages(t *testing.T) {
	p := right(t, `
j:
  script: x
  services:
    - redis
    - name: redis
      command: [redis-server, --save, ""]
    - {name: postgres, command: [postgres, -c, fsync=off]}
    - {name: "docker:dind", command: ["--mtu=1450"]}
    - {name: db, command: [./make-db, ./serve-db]}
`)
	require.Len(t, p.Jobs[0].Services, 1)
	require.Equal(t, "./make-db\n./serve-db", p.Jobs[0].Services[0].Command)
	require.Equal(t, 4, p.Warnings[0].Count)
}
