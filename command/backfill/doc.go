// Package backfill claims the message IDs that stand on a clean topic already, so that a pipeline
// which begins now does not emit them again.
//
// # Who owns such an ID
//
// The record on the clean topic: its topic ID, partition, offset and leader epoch. No record of an
// input has the clean topic's ID, so none takes such a claim for its own: every copy on the input
// is a duplicate, whatever its place, and whatever the fences say. That rests on topic IDs; a
// broker without them is refused.
//
// # Why nothing is lost
//
// A claim is made only for a record that is committed on the clean topic (read_committed, below the
// last stable offset), and never in place of another one. So an ID that a pipeline has claimed and
// not forwarded yet stays with the record that will be forwarded, and an ID that is claimed here is
// on the clean topic for good. That holds in any order, also while the pipeline runs, crashes and
// repeats. What may come of doing both at once is a message twice: if it was emitted before, and
// the pipeline claimed a copy of it before the backfill did.
//
// # Again
//
// A second run finds its own claims and changes nothing, so it may be interrupted at any point.
// Claims keep the end that the first run gave them: claim time and ttl.
package backfill
