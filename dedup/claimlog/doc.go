// Package claimlog is a dedup.Store on a shared, ordered log: claims are appended in blocks, every
// process reads all blocks into an index of its own, and the order of the log decides who owns an
// ID. Any number of processes may share a log; a decided answer is durable once the log lets its
// readers see the block.
//
//	Claim ─► a block per shard ─► Log ─► read back, in order ─► machine ─► index
//	                                                               └─► verdicts of one's own block
//
// Verdicts are a function of the log alone: no process asks another one, none compares its clock
// with another's, and an index that is lost is made again. What a log must be able to do is in
// [Log] and [Registry]; the packages below implement them. docs/claimlog.md has the rules and why
// they hold.
//
// The files, in the order of a claim:
//
//	store.go, claim.go, space.go, tend.go   dedup.Store; one log in use, which reads and answers
//	block.go, parse.go, renew.go            a block as bytes; what a block of renewals does
//	log.go, writing.go                      Log and Registry; of which version new blocks are
//	time.go                                 by which time a block is judged
//	machine.go, judge.go, known.go          what a block does, given what was read before it
//	index.go, memory.go, files.go           claims by ID, and how far each shard was read
//	beginning.go, carry.go                  what is missing at a log's beginning, or must stay
//	sharing.go, placement.go, peer.go       keepers: which shards this process keeps
//	route.go, shared.go, serve.go           asking keepers of other shards, and answering
//	request.go, reply.go                    what they say to each other, as bytes
package claimlog
