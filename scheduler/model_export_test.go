package scheduler

// ModelFactor is modelFactor, for the tests from outside.
const ModelFactor = modelFactor
