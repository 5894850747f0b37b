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
