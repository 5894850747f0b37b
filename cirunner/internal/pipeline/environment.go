package pipeline

import "cmp"

// environment reads what variables are made of. A server reads the rest.
func environment(n *node) Environment {
	if n.kind != mapping {
		return Environment{Name: n.text, Action: "start"}
	}
	return Environment{
		Name: n.field("name").text, URL: n.field("url").text,
		Action: cmp.Or(n.field("action").text, "start"), Tier: n.field("deployment_tier").text,
	}
}
