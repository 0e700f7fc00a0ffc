// Package redrive sends dead letters and dropped duplicates on their way again: into the input, or
// straight to the clean topic.
//
// # Why nothing is sent twice
//
// A letter is sent in one Kafka transaction with a mark that names its record: the place on the
// input, and a hash of the content. Marks are on a compacted topic, which a redrive reads before
// its first transaction. So they tell exactly which letters were redriven, whatever was selected by
// whom and when, and a letter that the pipeline wrote twice counts as one. Offsets of a consumer
// group would not do: a selection leaves gaps, and offsets expire.
//
// All redrives of a pipeline have one transactional ID. Who begins ends the transaction of the one
// before, and only then reads the marks; the brokers refuse the one before from then on.
//
// # Claims
//
// On its way to the clean topic a letter claims its message ID, for its own place on the topic of
// the letters, which no record of an input has. A claim that is there already and is the letter's
// own, by an attempt that was killed, is as good. So is one that the record made before it became a
// dead letter because no topic took it. Everything else makes the letter a copy, which is refused;
// with consent, a conflict is forwarded without a claim, once for each content.
//
// On its way into the input a letter claims nothing: the pipeline will. The claim that its record
// left behind, or an attempt into the clean topic that was killed, is released within the
// transaction, after its records are acknowledged: a redrive that was replaced does not come so
// far. Only then the transaction is committed. If that fails, the ID is free, a copy may take it,
// and the letter is then a copy.
package redrive
