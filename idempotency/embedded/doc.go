// Package embedded is an idempotency.Store in files of this process, on Pebble. It is for one process:
// who runs several needs a store that they share.
//
// What it answers is durable: a swap was synced to the write-ahead log, and so was the record that a
// caller is shown. TTLs are measured by the clock of this machine. A disk that cannot be written ends
// the process, and takes back nothing that was answered.
package embedded
