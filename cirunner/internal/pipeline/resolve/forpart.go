package resolve

import (
	"slices"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
)

// forPart returns the services with the variables of a part of the job.
func forPart(services []pipeline.Service, variables []pipeline.Variable) []pipeline.Service {
	services = slices.Clone(services)
	for i, s := range services {
		services[i].Variables = pipeline.Join(variables, s.Variables)
	}
	return services
}

// imagesForPart returns the services with the variables of a part of the job.
func imagesForPart(services []pipeline.ImageService, variables []pipeline.Variable) []pipeline.ImageService {
	services = slices.Clone(services)
	for i, s := range services {
		services[i].Variables = pipeline.Join(variables, s.Variables)
	}
	return services
}
