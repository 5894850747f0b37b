// Package pagetest has the tests of package page. They use a browser and the parser of Prometheus,
// which no program that has the page is to require.
package pagetest
