package dedup

import (
	"errors"
	"fmt"
	"strconv"
)

// ErrScopeMismatch is wrapped by Store.Register when a scope was registered with other settings.
var ErrScopeMismatch = errors.New("the scope was registered with other settings")

// CompareScopes returns an error if the settings of a start differ from those that are registered.
func CompareScopes(now, registered Scope) error {
	switch {
	case now.Buckets != registered.Buckets:
		return scopeMismatch(now, "buckets", strconv.Itoa(registered.Buckets),
			strconv.Itoa(now.Buckets), ": kdedup migrate moves the claims there")
	case now.Extractor != registered.Extractor:
		return scopeMismatch(now, "message_id", registered.Extractor, now.Extractor,
			" to start without them")
	}
	return nil
}

func scopeMismatch(scope Scope, setting, registered, now, another string) error {
	return fmt.Errorf(
		"scope %s/%s: %w: %s was %s and is now %s: the claims made so far would not be found; "+
			"set %s back, or name another scope%s",
		scope.ConsumerGroup, scope.Name, ErrScopeMismatch, setting, registered, now, setting,
		another)
}
