// Package logreader reads a part of a topic once, as a read_committed consumer sees it. It joins no
// consumer group and commits nothing, so nobody notices that it reads.
package logreader
