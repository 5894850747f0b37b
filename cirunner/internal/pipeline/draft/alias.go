package draft

import (
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
)

// aliases reads the names of a service: with spaces or commas between them.
func aliases(p *Parser, n *tree.Node) []string {
	text, _ := p.String("services:alias", n)
	return strings.FieldsFunc(text, func(c rune) bool { return c == ' ' || c == ',' })
}

// namesOfImage returns the names that a service has by its image, as in GitLab: that of
// registry.example.com/group/image:1 is registry.example.com-group-image and
// registry.example.com__group__image.
func namesOfImage(image string) []string {
	name, _, _ := strings.Cut(image, "@")
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		name = name[:i]
	}
	dashed, underscored := strings.ReplaceAll(name, "/", "-"), strings.ReplaceAll(name, "/", "__")
	if dashed == underscored {
		return []string{dashed}
	}
	return []string{underscored, dashed}
}
