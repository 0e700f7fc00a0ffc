// Package consumer is membership in a Kafka consumer group: poll a batch, hand it on, commit it. It
// says what a session does; package client below it knows how, on franz-go.
//
// A session is one member. It commits only what it handed out and only when told so, after the
// forwards are acknowledged. Transactional commits forwards, fence and offsets in one Kafka
// transaction; AtLeastOnce writes the fence and then commits the offsets.
//
//	Transactional                                          AtLeastOnce
//
//	idle                                                   idle
//	 │ Poll: fences are read, places are checked            │ Poll                    (offsets of the last batch
//	polled ─► claiming; its goroutine (opening)            polled ─► claiming           are on their way)
//	 │         begins the transaction, adds offsets         │
//	 │ Begin: opening is over, fences are produced          │ Begin: those offsets are committed
//	begun ─► Produce …                                     begun ─► Produce …
//	 │ Commit: EndTxn                                       │ Commit: fences, then offsets are sent
//	committed ─► idle                                      committed ─► idle
//	 or Abort, from polled on ─► given back ─► idle         or Abort, before Produce ─► given back ─► idle
//
// The lane's goroutine calls the methods of a session, one at a time. While a batch is claimed the
// opening's goroutine has the transaction; Begin, Abort and Close end it first. The client's
// goroutine calls Events, at any time: it takes partitions away and ends the claims of the batch in
// hand, and nothing else. A third goroutine measures the lag. What they share is behind member.mu.
// Only the lane ends a batch, and only the one who made the session closes it.
//
// The fence (package fence) remembers, apart from the group's offsets, up to where each input
// partition is done.
package consumer
