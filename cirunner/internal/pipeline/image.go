package pipeline

import "slices"

// An Image is what the container of a job or of a service is made of. Texts may hold
// variables.
type Image struct {
	Name string

	// Entrypoint takes the place of the image's own; nil where the file does not say. A
	// list of one empty text is none.
	Entrypoint []string

	// Pull is PullMissing, PullAlways or PullNever.
	Pull Pull

	User, Platform string // empty where the file does not say
}

// Pull says when an image is fetched.
type Pull string

const (
	PullMissing Pull = "if-not-present"
	PullAlways  Pull = "always"
	PullNever   Pull = "never"
)

// An ImageService is a container that runs beside that of a job. Services that are
// commands are of the type [Service].
type ImageService struct {
	Image
	Aliases   []string   // names by which the job reaches it; at least one
	Command   []string   // in place of the image's own; empty for that
	Variables []Variable // the job's, with those of the service over them
	Pos       Pos
}

// readImage reads the image of a job.
func readImage(p *parser, d *draft, n *node) {
	image, ok := p.image("image", n, nil)
	if ok {
		d.Image = &image
	}
}

// image reads an image: its name, or a mapping with that and more keys.
func (p *parser) image(what string, n *node, more keys) (image Image, ok bool) {
	image.Pull = PullMissing
	if n.kind != mapping {
		image.Name, ok = p.string(what, n)
		return image, ok && p.imageName(what, n, image.Name)
	}
	readers := keys{
		"name":        func(n *node) { image.Name, _ = p.string(what+":name", n) },
		"entrypoint":  func(n *node) { image.Entrypoint = p.words(what+":entrypoint", n) },
		"pull_policy": func(n *node) { p.pullPolicy(what, &image, n) },
		"docker": func(n *node) {
			p.fields(what+":docker", n, keys{
				"user":     func(n *node) { image.User, _ = p.string(what+":docker:user", n) },
				"platform": func(n *node) { image.Platform, _ = p.string(what+":docker:platform", n) },
			}, nil)
		},
	}
	for key, read := range more {
		readers[key] = read
	}
	ok = p.fields(what, n, readers, map[string]string{"kubernetes": "containers are those of docker or podman"})
	return image, ok && p.imageName(what, n, image.Name)
}

func (p *parser) imageName(what string, n *node, name string) bool {
	if name == "" && n.kind != invalid {
		p.errorf(n.at, "%s needs the name of an image", what)
	}
	return name != ""
}

// words reads the words of a command: a list, or one word.
func (p *parser) words(what string, n *node) []string {
	words := []string{}
	for _, item := range p.list(what, n) {
		words = append(words, item.text)
	}
	return words
}

// pullPolicy reads a policy, or a list of which the first counts.
func (p *parser) pullPolicy(what string, image *Image, n *node) {
	if n.kind == list && len(n.items) > 1 {
		p.warn(n.at, what+":pull_policy", "the first policy counts: no pull is tried in another way")
	}
	for i, item := range p.list(what+":pull_policy", n) {
		if pull, ok := choice(p, what+":pull_policy", item, PullAlways, PullMissing, PullNever); ok && i == 0 {
			image.Pull = pull
		}
	}
}

// imageService reads a service that is an image.
func (p *parser) imageService(n *node) (ImageService, bool) {
	s := ImageService{Pos: p.pos(n.at)}
	image, ok := p.image("services", n, keys{
		"alias":     func(n *node) { s.Aliases = aliases(p, n) },
		"command":   func(n *node) { s.Command = p.words("services:command", n) },
		"variables": func(n *node) { s.Variables = p.variables(n, false) },
	})
	if s.Image = image; len(s.Aliases) == 0 {
		s.Aliases = namesOfImage(image.Name)
	}
	return s, ok
}

// checkImages looks at what services are possible together with an image.
func (p *parser) checkImages(d *draft, job *node) {
	switch {
	case d.Image != nil && len(d.Services) > 0:
		p.errorf(job.keyAt("services"), "a service that is a command runs on this machine, and the job in a container: give it an image, or run with -host")
	case d.Image == nil && len(d.ImageServices) > 0:
		p.warn(job.at, "a service as an image", "it is not started: the job has no image, and runs on this machine")
		d.ImageServices = nil
	}
}

// imagesForPart returns the services with the variables of a part of the job.
func imagesForPart(services []ImageService, variables []Variable) []ImageService {
	services = slices.Clone(services)
	for i, s := range services {
		services[i].Variables = join(variables, s.Variables)
	}
	return services
}
