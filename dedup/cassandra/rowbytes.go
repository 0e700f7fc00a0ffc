package cassandra

// RowBytes is about what one claim takes on each replica's disk with an ID of this length, once it
// is compacted. Measured on Cassandra 5.0.9 with the table that Setup creates, random hexadecimal
// IDs and the default compression: 51, 70, 100, 164 and 291 bytes with IDs of 16, 36, 64, 128 and
// 256.
func RowBytes(idBytes int) int { return 35 + idBytes }
