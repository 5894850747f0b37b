package parse

import (
	"testing"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/stretchr/testify/require"
)

func TestImages(t *testing.T) {
	const data = `
image: golang:1.26
default: {services: [redis]}
top: {script: x}
own:
  image: {name: "$REGISTRY/tool:2", entrypoint: [""], pull_policy: [never, always], docker: {user: nobody, platform: linux/arm64}, kubernetes: {user: a}}
  services:
    - name: registry.example.com/group/db:16
      command: [db, --fast]
      variables: {LEVEL: debug}
    - {name: mysql, alias: "db, sql", entrypoint: [/run], pull_policy: always}
  variables: {A: b}
  script: x
none: {script: x, image: ~, inherit: {default: false}}
`
	p, err := Options{Containers: true}.Parse("f.yml", []byte(data))
	require.NoError(t, err)
	var warnings []string
	for _, w := range p.Warnings {
		warnings = append(warnings, w.Keyword)
	}
	require.Equal(t, []string{"image:pull_policy", "image:kubernetes"}, warnings)
	top, own := p.Job("top"), p.Job("own")
	require.Equal(t, &pipeline.Image{Name: "golang:1.26", Pull: pipeline.PullMissing}, top.Image)
	require.Equal(t, []string{"redis"}, top.ImageServices[0].Aliases)
	require.Equal(t, &pipeline.Image{Name: "$REGISTRY/tool:2", Entrypoint: []string{""}, Pull: pipeline.PullNever, User: "nobody", Platform: "linux/arm64"}, own.Image)
	db, sql := own.ImageServices[0], own.ImageServices[1]
	require.Equal(t, []string{"registry.example.com__group__db", "registry.example.com-group-db"}, db.Aliases)
	require.Equal(t, []string{"db", "--fast"}, db.Command)
	require.Equal(t, []pipeline.Variable{{Name: "A", Value: "b"}, {Name: "LEVEL", Value: "debug"}}, db.Variables)
	require.Equal(t, []string{"db", "sql"}, sql.Aliases)
	require.Equal(t, pipeline.Image{Name: "mysql", Entrypoint: []string{"/run"}, Pull: pipeline.PullAlways}, sql.Image)
	require.Nil(t, p.Job("none").Image)
	require.Empty(t, p.Job("none").ImageServices)

	for data, want := range map[string]string{
		"j: {script: x, image: {}}":                                                   "image needs the name of an image",
		"j: {script: x, image: {name: a, pull_policy: often}}":                        "pull_policy should be always, if-not-present or never",
		"j: {script: x, image: {name: a, nmae: b}}":                                   `did you mean "name"?`,
		"j: {script: x, image: a, services: [{name: web, command: serve, port: 80}]}": "give it an image, or run with -host",
	} {
		_, err := Options{Containers: true}.Parse("f.yml", []byte(data))
		require.ErrorContains(t, err, want, data)
	}
}
