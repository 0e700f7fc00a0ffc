// Package redis keeps claims in Redis 7.0 or later, or in Valkey: one key per claim.
//
// A claim is SET key value NX GET EX ttl. That one command decides: it answers nil when it made the
// claim, and the value of the claim that holds the ID when there is one. The claims of a call go
// out in few pipelines. No two keys are ever in one command, so a cluster may spread them as it
// likes, and the server itself ends each claim with its TTL.
//
// # What survives
//
// The survivable part of this store is the server's process, or whatever of it comes back with the
// same data. What that is, the server's settings decide, and this package can only look at them:
//
//   - appendonly yes, appendfsync always: every answer survives a crash of the server, and of its machine.
//   - appendonly yes, appendfsync everysec: a crash of the machine takes back about the last two seconds.
//     One of the process takes back what was not written to the file: while a sync is slow the server
//     answers and puts off the write, for up to two seconds.
//   - no append-only file: a restart takes back everything since the last snapshot.
//   - a failover to a replica takes back what the old master had not sent yet: replication is
//     asynchronous. WaitReplicas makes that unlikely, not impossible.
//
// A claim that is taken back is a claim that was never made: the next copy of the message claims
// the ID again and is forwarded, so the clean topic has it twice. No message is ever lost that way,
// because losing one takes an ID that is owned by a record that nobody forwards.
//
// A server that evicts keys under memory pressure would take claims back all day. Every connection
// is refused whose server does not have maxmemory-policy noeviction, also after a failover.
package redis
