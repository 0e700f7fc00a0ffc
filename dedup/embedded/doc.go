// Package embedded is a dedup.Store in files of this process, on Pebble. It is for one process: who
// runs several needs a store that they share.
//
// Every answer is durable when it is given: a claim was synced to the write-ahead log, and so was
// the claim that an Exists answer tells of. Expired claims count as absent at once, and a sweeper
// deletes them later.
package embedded
