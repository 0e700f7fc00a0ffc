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
package claimlog
