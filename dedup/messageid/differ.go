package messageid

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/jsonpath"
)

const (
	mostNamed    = 3       // fields in which two records differ
	longestName  = 80      // bytes of the name of one
	mostCompared = 1 << 20 // bytes of a value that is read for its fields
)

// Differ says in what a copy differs from the record that owns its ID: in the key, in the value, in
// which fields of it. It tells names of fields and no contents, which may be personal. An error is
// the registry's.
func (d *Reader) Differ(ctx context.Context, owner, copied *kgo.Record) (string, error) {
	value, err := d.valueDiffers(ctx, owner, copied)
	if err != nil {
		return "", err
	}
	key := !bytes.Equal(owner.Key, copied.Key) || (owner.Key == nil) != (copied.Key == nil)
	switch {
	case key && value != "":
		return "the key, and " + value, nil
	case key:
		return "the key alone", nil
	case value != "":
		return value, nil
	}
	return "neither the key nor the value: the owner claimed by another rule of what counts", nil
}

// valueDiffers is empty where the values are equal.
func (d *Reader) valueDiffers(ctx context.Context, owner, copied *kgo.Record) (string, error) {
	switch {
	case (owner.Value == nil) != (copied.Value == nil):
		return "the value, which one of them does not have", nil
	case bytes.Equal(owner.Value, copied.Value):
		return "", nil
	case max(len(owner.Value), len(copied.Value)) <= mostCompared:
		fields, ok, err := d.fieldsThatDiffer(ctx, owner, copied)
		if err != nil {
			return "", err
		}
		if ok {
			return nameFields(fields), nil
		}
	}
	at := 0
	for at < min(len(owner.Value), len(copied.Value)) && owner.Value[at] == copied.Value[at] {
		at++
	}
	return fmt.Sprintf("the value, from byte %d on (%d bytes, the owner has %d)", at,
		len(copied.Value), len(owner.Value)), nil
}

// fieldsThatDiffer is false where not both values are documents.
func (d *Reader) fieldsThatDiffer(
	ctx context.Context, owner, copied *kgo.Record,
) (fields []string, ok bool, err error) {
	var texts [2]map[string]string
	var objects [2]map[string]any
	for i, r := range []*kgo.Record{owner, copied} {
		doc, has, err := d.Document(ctx, r)
		if err != nil || !has {
			return nil, false, err
		}
		if texts[i], has = jsonpath.Texts(doc); !has {
			return nil, false, nil
		}
		objects[i], _ = jsonpath.Object(doc)
	}
	for path, text := range texts[0] {
		if other, has := texts[1][path]; !has || other != text {
			fields = append(fields, path)
		}
	}
	for path := range texts[1] {
		if _, has := texts[0][path]; !has {
			fields = append(fields, path)
		}
	}
	slices.Sort(fields)
	// a field may have a name that no path can tell
	return fields, len(fields) > 0 || reflect.DeepEqual(objects[0], objects[1]), nil
}

func nameFields(fields []string) string {
	if len(fields) == 0 {
		return "how the value is written"
	}
	named := fields[:min(len(fields), mostNamed)]
	for i, path := range named {
		if len(path) > longestName {
			named[i] = strings.ToValidUTF8(path[:longestName], "") + "…"
		}
	}
	text := "the value in " + strings.Join(named, ", ")
	if more := len(fields) - len(named); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
