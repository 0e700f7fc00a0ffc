// Package embedded is an idempotency.Store in files of this process. It is for one process: who
// runs several needs a store that they share.
//
// What it answers is durable: a swap was synced to its file, and so was the record that a caller is
// shown. TTLs are measured by the clock of this machine. Expired records count as absent at once;
// their files are deleted once all records in them have surely expired. When a write or a sync
// fails, the store answers nothing any more until it was opened again: only then it is known what
// the files hold. Only the user of the process can read the files.
package embedded
