package draft

import (
	"slices"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
)

// passedOverInDefault are the keywords that mean nothing here and may be in default, as in GitLab.
var passedOverInDefault = []string{"image", "cache", "tags", "hooks", "id_tokens", "identity"}

// passOver warns of a keyword of a job that means nothing in this run, and reads it all the same: a key that GitLab
// does not know is one that somebody has mistyped.
func (p *Parser) passOver(at tree.Mark, key string, n *tree.Node, why string) {
	p.Ignore(at, key, why)
	if n.Kind != tree.Null {
		p.Quietly(func() { p.readPassedOver(key, n) })
	}
}

func (p *Parser) readPassedOver(key string, n *tree.Node) {
	switch key {
	case "cache":
		readCache(p, &Draft{}, n)
	case "image":
		readImage(p, &Draft{}, n)
	case "tags":
		p.tags(n)
	case "release":
		p.onlyKeys("release", n, "tag_name", "tag_message", "description", "name", "ref", "milestones", "released_at", "assets")
	case "hooks":
		p.onlyKeys("hooks", n, "pre_get_sources_script")
	case "pages":
		if n.Kind != tree.Boolean {
			p.onlyKeys("pages", n, "path_prefix", "expire_in", "publish")
		}
	case "secrets":
		if p.IsMapping("secrets", n) {
			for _, f := range n.Fields {
				p.onlyKeys("secrets:"+f.Key, f.Value, "vault", "gitlab_secrets_manager", "gcp_secret_manager", "azure_key_vault", "akeyless",
					"aws_secrets_manager", "file", "token")
			}
		}
	case "id_tokens":
		if p.IsMapping("id_tokens", n) {
			for _, f := range n.Fields {
				p.onlyKeys("id_tokens:"+f.Key, f.Value, "aud")
			}
		}
	}
}

// tags reads names of runners, in a list in which there may be lists.
func (p *Parser) tags(n *tree.Node) {
	items, ok := flat(n, 0, nil)
	if n.Kind != tree.List || !ok || slices.ContainsFunc(items, func(item *tree.Node) bool { return item.Kind == tree.Mapping }) {
		p.Should("tags", n, "a list of texts")
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
