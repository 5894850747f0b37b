// Package readme has the code that README.md shows, and package byhand beside it the code that it replaces.
package readme
