// Package report tells what is on an input topic before anything is changed: how many copies there
// are, how far apart, what they differ in, and which ttl would catch them.
//
// It works in two passes. The first one reads the topic, takes each record's ID and fingerprint
// with package dedup, as a pipeline does, and gives them to a sorter: in memory as long as they
// fit, else in temporary files. The second one walks through them ordered by ID and time, so that
// all copies of one ID stand side by side. So every count is exact, and the memory does not grow
// with the topic.
package report
