package server

// meanings are shown where the mouse rests on the name of an outcome, a verdict, or a result of a
// batch or of a claim. Where two of these have one name, they have one meaning.
var meanings = map[string]string{
	"forwarded":      "to the clean topic, as the first of its ID",
	"duplicate":      "another record with the same content owns the ID",
	"conflict":       "another record with another key or value owns the ID",
	"replay":         "it was forwarded before the group's offsets were set back",
	"passed_through": "to the clean topic without being the first: by mode or policy",
	"dropped":        "not forwarded, because a policy says drop: it has no ID, for example",
	"dead_lettered":  "to the dead-letter topic",

	"unclaimed": "the store could not be asked in time, and the policy does not insist",
	"missing":   "the record has no message ID",
	"first":     "the record claimed its ID just now",
	"mine":      "the record owns its ID through an earlier attempt that did not commit",
	"inherited": "the record stands for the owner of its ID, which is gone from the input",
	"exempt":    "only_if leaves the record out",
	"tombstone": "the record has no value, and on_tombstone says what becomes of it",

	"committed": "forwarded, with its offsets",
	"aborted":   "given back: its records come again",
	"failed":    "ended by an error: its records come again",

	"acquired":    "the key was free, and is the caller's now",
	"in_progress": "another caller has the key",
	"completed":   "the work was done before: its response was told again",
	"stranger":    "neither token nor certificate is that of a caller",
	"busy":        "more requests were under way than max_requests",
	"unread":      "malformed, or larger than max_bytes",

	"applied": "the ID was new, and is owned by the record now",
	"exists":  "the ID has an owner",
}
