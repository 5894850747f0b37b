package draft

import (
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
)

// readImage reads the image of a job.
func readImage(p *Parser, d *Draft, n *tree.Node) {
	image, ok := p.image("image", n, nil)
	if ok {
		d.Image = &image
	}
}

// image reads an image: its name, or a mapping with that and more keys.
func (p *Parser) image(what string, n *tree.Node, more tree.Keys) (image pipeline.Image, ok bool) {
	image.Pull = pipeline.PullMissing
	if n.Kind != tree.Mapping {
		image.Name, ok = p.String(what, n)
		return image, ok && p.imageName(what, n, image.Name)
	}
	readers := tree.Keys{
		"name":        func(n *tree.Node) { image.Name, _ = p.String(what+":name", n) },
		"entrypoint":  func(n *tree.Node) { image.Entrypoint = p.words(what+":entrypoint", n) },
		"pull_policy": func(n *tree.Node) { p.pullPolicy(what, &image, n) },
		"docker": func(n *tree.Node) {
			p.Fields(what+":docker", n, tree.Keys{
				"user":     func(n *tree.Node) { image.User, _ = p.String(what+":docker:user", n) },
				"platform": func(n *tree.Node) { image.Platform, _ = p.String(what+":docker:platform", n) },
			}, nil)
		},
	}
	for key, read := range more {
		readers[key] = read
	}
	ok = p.Fields(what, n, readers, map[string]string{"kubernetes": "containers are those of docker or podman"})
	return image, ok && p.imageName(what, n, image.Name)
}

func (p *Parser) imageName(what string, n *tree.Node, name string) bool {
	if name == "" && n.Kind != tree.Invalid {
		p.Errorf(n.At, "%s needs the name of an image", what)
	}
	return name != ""
}

// words reads the words of a command.
func (p *Parser) words(what string, n *tree.Node) []string {
	words := []string{}
	for _, item := range p.Texts(what, n) {
		words = append(words, item.Text)
	}
	return words
}

// pullPolicy reads a policy, or a list of which the first counts.
func (p *Parser) pullPolicy(what string, image *pipeline.Image, n *tree.Node) {
	if n.Kind == tree.List && len(n.Items) > 1 {
		p.Warn(n.At, what+":pull_policy", "the first policy counts: no pull is tried in another way")
	}
	for i, item := range p.List(what+":pull_policy", n) {
		if pull, ok := tree.Choice(p.Reader, what+":pull_policy", item, pipeline.PullAlways, pipeline.PullMissing, pipeline.PullNever); ok && i == 0 {
			image.Pull = pull
		}
	}
}

// imageService reads a service that is an image.
func (p *Parser) imageService(n *tree.Node) (pipeline.ImageService, bool) {
	s := pipeline.ImageService{Pos: p.Pos(n.At)}
	image, ok := p.image("services", n, tree.Keys{
		"alias":     func(n *tree.Node) { s.Aliases = aliases(p, n) },
		"command":   func(n *tree.Node) { s.Command = p.words("services:command", n) },
		"variables": func(n *tree.Node) { s.Variables = p.variables(n, false) },
	})
	if s.Image = image; len(s.Aliases) == 0 {
		s.Aliases = namesOfImage(image.Name)
	}
	return s, ok
}

// checkImages looks at what services are possible together with an image.
func (p *Parser) checkImages(d *Draft, job *tree.Node) {
	switch {
	case d.Image != nil && len(d.Services) > 0:
		p.Errorf(job.KeyAt("services"), "a service that is a command runs on this machine, and the job in a container: give it an image, or run with -host")
	case d.Image == nil && len(d.ImageServices) > 0:
		p.Warn(job.At, "a service as an image", "it is not started: the job has no image, and runs on this machine")
		d.ImageServices = nil
	}
}
