package dedup

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrScopeMismatch is wrapped by Store.Register when a scope was registered with other settings.
var ErrScopeMismatch = errors.New("the scope was registered with other settings")

// CompareScopes returns an error if the settings of a start differ from those that are registered.
func CompareScopes(now, registered Scope) error {
	switch {
	case now.Buckets != registered.Buckets:
		return scopeMismatch(now, "buckets", strconv.Itoa(registered.Buckets),
			strconv.Itoa(now.Buckets), ": kdedup migrate moves the claims there")
	case idsOf(now) == idsOf(registered) && now.Extractor != registered.Extractor:
		return scopeMismatch(now, "fingerprint", contentOf(registered), contentOf(now),
			" to start without them")
	case now.Extractor != registered.Extractor:
		return scopeMismatch(now, "message_id", registered.Extractor, now.Extractor,
			" to start without them")
	}
	return nil
}

// FingerprintMark stands in an Extractor's String between how IDs are made and what fingerprints
// are of, where that is not all of a record. So CompareScopes can say which of the two differs.
const FingerprintMark = "; fingerprint "

func idsOf(s Scope) string {
	if at := strings.LastIndex(s.Extractor, FingerprintMark); at >= 0 {
		return s.Extractor[:at]
	}
	return s.Extractor
}

func contentOf(s Scope) string {
	if at := strings.LastIndex(s.Extractor, FingerprintMark); at >= 0 {
		return s.Extractor[at+len(FingerprintMark):]
	}
	return "all"
}

func scopeMismatch(scope Scope, setting, registered, now, another string) error {
	return fmt.Errorf(
		"scope %s/%s: %w: %s was %s and is now %s: the claims made so far would not be found; "+
			"set %s back, or name another scope%s",
		scope.ConsumerGroup, scope.Name, ErrScopeMismatch, setting, registered, now, setting,
		another)
}
