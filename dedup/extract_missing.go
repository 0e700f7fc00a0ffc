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
	// MissingUnparsable: the value is not one valid JSON document.
	MissingUnparsable
	// MissingUnsupportedType: the JSON field is a boolean, an object or an array.
	MissingUnsupportedType
)

var missingReasonNames = [...]string{"not_missing", "absent", "null", "empty", "unparsable",
	"unsupported_type"}

// String is the reason in metrics, headers and logs.
func (m MissingReason) String() string { return missingReasonNames[m] }

// MissingReasons lists every reason but NotMissing, for metrics that exist from the start.
func MissingReasons() []MissingReason {
	return []MissingReason{MissingAbsent, MissingNull, MissingEmpty, MissingUnparsable,
		MissingUnsupportedType}
}
