// Package keepers connects the processes that share the shards of a claim log: who they are, by a
// consumer group of the brokers ([Members]), and how they ask each other ([Network]).
//
// Connections are TLS 1.3 on a port of its own, with certificates on both sides, from files or made
// from a secret that all share ([FromSecret]). Without, a network works on loopback only. A
// connection carries frames:
//
//	length   4 bytes, big-endian, of what follows
//	kind     1 byte: request, cancel, answer, busy
//	number   8 bytes, of the request among those of the connection
//	payload  of a request or an answer, see package claimlog
//
// and begins with a preamble, in both directions, that names the version of the frames. Answers
// come in any order, each request is worked on by a goroutine of its own, and what one side may
// have under way with the other is bounded, in requests and bytes.
package keepers
