package dedup

// MissingReason says why a record has no message ID.
type MissingReason uint8

const (
	// NotMissing is the zero value: the record has an ID.
	NotMissing MissingReason = iota
	// MissingAbsent: the record has no such header, or the document no such field.
	MissingAbsent
	// MissingNull: the header, the key, the value or the JSON field is null.
	MissingNull
	// MissingEmpty: it is there and has no bytes.
	MissingEmpty
	// MissingUnparsable: up to the field, or as a whole if it has none, it is not valid JSON, or is
	// cut off, or was written with another schema.
	MissingUnparsable
	// MissingUnsupportedType: the field is a boolean, an object, an array or the like.
	MissingUnsupportedType
	// MissingExempt: no ID is looked for, for a condition of the extractor does not hold.
	MissingExempt
	// MissingTombstone: no ID is looked for, for the extractor tells tombstones apart.
	MissingTombstone
	// MissingUnframed: it does not begin with the ID of a schema.
	MissingUnframed
	// MissingUnknownSchema: the schema registry says that it has no schema with the record's ID.
	MissingUnknownSchema
	// MissingUnusableSchema: the record's schema is of another kind, or cannot be read.
	MissingUnusableSchema
	// MissingUnresolved: nobody knows yet whether there is an ID, see Resolver.
	MissingUnresolved
)

var missingReasonNames = [...]string{"not_missing", "absent", "null", "empty", "unparsable",
	"unsupported_type", "exempt", "tombstone", "unframed", "unknown_schema", "unusable_schema",
	"unresolved"}

// String is the reason in metrics, headers and logs.
func (m MissingReason) String() string { return missingReasonNames[m] }

// Verdict is that about a record without an ID.
func (m MissingReason) Verdict() Verdict {
	switch m {
	case MissingExempt:
		return VerdictExempt
	case MissingTombstone:
		return VerdictTombstone
	case MissingUnresolved:
		return VerdictUnclaimed
	}
	return VerdictMissing
}

// MissingReasons lists those of VerdictMissing, for counts that exist from the start.
func MissingReasons() []MissingReason {
	return []MissingReason{MissingAbsent, MissingNull, MissingEmpty, MissingUnparsable,
		MissingUnsupportedType, MissingUnframed, MissingUnknownSchema, MissingUnusableSchema}
}
