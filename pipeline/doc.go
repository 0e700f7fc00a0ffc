// Package pipeline is the loop that everything else serves: poll, claim, forward, commit.
//
// A pipeline runs some lanes. A lane is one member of the consumer group and works alone, batch by
// batch; while one lane commits, another one claims. Because the batch is the unit, nothing is
// committed before it was forwarded, without any book-keeping:
//
//	poll     a batch of records, in partition order
//	claim    their message IDs in the store; each record learns whether it is the first
//	forward  the first ones to the clean topic, acknowledged
//	commit   the offsets: with exactly_once in one transaction with the forwards
//
// A crash between any two of them leads back to the poll. The claims stand and know their owners,
// so the records that won their ID win it again.
package pipeline
