//go:build !race

package async_test

const raceFactor = 1
