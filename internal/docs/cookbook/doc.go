// Package cookbook holds the recipes of docs/cookbook.md, so that they are
// compiled and tested. Package docs checks that the page shows these files.
package cookbook
