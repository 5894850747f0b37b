// Package adopting holds the code of docs/adopting.md, so that it is compiled
// and run. Package docs checks that the page shows these files.
package adopting
