// Package embedded is a dedup.Store in files of this process. It is for one process:
// several need a store that they share.
//
// Every answer is durable when it is given: a claim was synced to its file, and so was the claim
// that an Exists answer tells of. Expired claims count as absent at once. Their files are deleted
// once all claims in them have expired.
package embedded
