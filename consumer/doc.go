// Package consumer is membership in a Kafka consumer group: poll a batch, hand it on, commit it.
//
// A session is one member. It commits only what it handed out and only when told so, after the
// forwards are acknowledged. Transactional commits forwards, fence and offsets in one Kafka
// transaction; AtLeastOnce writes the fence and then commits the offsets.
//
// The fence is a compacted topic with one partition per input partition. It remembers, apart from
// the group's offsets, up to where each input partition is done, so that a group whose offsets were
// set back is recognised: offsets alone cannot tell a rewind from a redelivery.
package consumer
