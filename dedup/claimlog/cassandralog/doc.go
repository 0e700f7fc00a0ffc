// Package cassandralog is a claim log in two tables of Cassandra. A block is a row, and its place
// is decided by a conditional statement: it comes to stand behind the last block that its writer
// has read, or not at all.
//
// A shard is a chain of slices, partitions of sliceBlocks places each. A slice keeps, in a static
// column, the mark of its last block. An append sets it from the mark that the process has read to
// that of its own block, and inserts the row, in one conditional batch. So it is refused if there
// is any block that the process does not know, whether or not that can still be read: what has
// expired, was truncated or restored from a backup cannot be written over.
//
// Blocks have a TTL. It never ends before that of the block in front, by the clocks of the
// claimants, which are compared with those of the nodes. So what lives of a shard is its end,
// without gaps. The registry has, without a TTL, the slice in which the end of each shard is. If
// all of that slice has expired, nobody knows which places were used: then whoever comes first
// fills all of it with empty blocks, and all go on in the next slice.
package cassandralog
