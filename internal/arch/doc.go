// Package arch holds the rules about the shape of this module, as tests: which package may import
// which, where the large dependencies may show, and how long a file may be.
package arch
