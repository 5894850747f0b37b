package draft

import (
	"cmp"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
)

// environment reads what variables are made of. A server reads the rest.
func (p *Parser) environment(n *tree.Node) pipeline.Environment {
	if n.Kind != tree.Mapping {
		return pipeline.Environment{Name: n.Text, Action: "start"}
	}
	p.onlyKeys("environment", n, "name", "url", "action", "deployment_tier", "on_stop", "auto_stop_in", "kubernetes")
	return pipeline.Environment{
		Name: n.Field("name").Text, URL: n.Field("url").Text,
		Action: cmp.Or(n.Field("action").Text, "start"), Tier: n.Field("deployment_tier").Text,
	}
}

// onlyKeys reports the keys of a mapping that GitLab does not know. Nothing here reads the others.
func (p *Parser) onlyKeys(what string, n *tree.Node, known ...string) {
	keys := tree.Keys{}
	for _, key := range known {
		keys[key] = func(*tree.Node) {}
	}
	p.Fields(what, n, keys, nil)
}
