// Package api has programs in other languages that ask kdedup, and the tests that kill them in the
// middle of their effects.
package api
