package connect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/fence"
)

// ErrMoved is wrapped where claims may not be made in a scope, because kdedup migrate is moving
// them, or has moved them.
var ErrMoved = errors.New("the claims of this scope are not all here")

// PlaceBreak parts the text of a note about a place: the store's identity, the scope, and the name
// of the store for people.
const PlaceBreak = " | "

// PlaceName is for people.
func PlaceName(note string) string {
	parts := strings.Split(note, PlaceBreak)
	return parts[len(parts)-1]
}

// CheckMovedAway refuses a scope whose claims were moved away.
func CheckMovedAway(ctx context.Context, store dedup.Store, scope dedup.Scope) error {
	to, moved, err := dedup.MovedAway.Read(ctx, store, scope)
	if err != nil || !moved {
		return err
	}
	return fmt.Errorf("%w: kdedup migrate has moved scope %s/%s to %s: start with the file that "+
		"names that store; the way back is kdedup migrate in the other direction",
		ErrMoved, scope.ConsumerGroup, scope.Name, PlaceName(to))
}

// CheckMoved also refuses a scope whose claims have not all arrived.
func CheckMoved(ctx context.Context, store dedup.Store, scope dedup.Scope) error {
	if err := CheckMovedAway(ctx, store, scope); err != nil {
		return err
	}
	from, missing, err := dedup.NotAllHere.Read(ctx, store, scope)
	if err != nil || !missing {
		return err
	}
	return fmt.Errorf("%w: kdedup migrate has begun to move scope %s/%s here from %s and has not "+
		"ended well: run it again, or go on with that store; kdedup migrate --cancel says so",
		ErrMoved, scope.ConsumerGroup, scope.Name, PlaceName(from))
}

// Handled is up to where an input was handled with another store, whose claims were moved: the
// fences by partition. What that store handles later, this one does not know.
type Handled struct {
	TopicID    [16]byte              `json:"topic_id"`
	Partitions map[int32]HandledPart `json:"partitions"`
}

// HandledPart is a fence.
type HandledPart struct {
	Next    int64 `json:"next"`
	Epoch   int32 `json:"epoch"`
	Claimed int64 `json:"claimed"` // milliseconds
}

func partOf(f fence.Fence) HandledPart {
	part := HandledPart{Next: f.Next(), Epoch: f.LeaderEpoch}
	if at := f.Claimed(); !at.IsZero() {
		part.Claimed = at.UnixMilli()
	}
	return part
}

// covers reports whether the fence tells of nothing that came later.
func (h Handled) covers(partition int32, f fence.Fence) bool {
	known, found := h.Partitions[partition]
	now := partOf(f)
	return found && fence.SameTopic(h.TopicID, f.TopicID) && now.Next <= known.Next &&
		now.Epoch <= known.Epoch && now.Claimed <= known.Claimed
}

// DeclareHandled notes in a store that claims were moved into it, and up to where they go: the
// fences that the other store has written so far.
func DeclareHandled(
	ctx context.Context, store dedup.Store, e *Entry, other string, h Handled,
) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return dedup.DeclareUpTo(ctx, store, e.ClaimScope(), e.Input, other, string(text))
}

// Add notes a fence.
func (h *Handled) Add(partition int32, f fence.Fence) {
	if h.Partitions == nil {
		h.Partitions = make(map[int32]HandledPart)
	}
	if h.TopicID == ([16]byte{}) { // brokers may tell it for some partitions only
		h.TopicID = f.TopicID
	}
	h.Partitions[partition] = partOf(f)
}

func (k Knowledge) movedUpTo(
	ctx context.Context, e Entry, partition int32, f fence.Fence,
) (bool, error) {
	text, found, err := dedup.StandsUpTo(ctx, k.store, e.ClaimScope(), e.Input, f.Store)
	if err != nil || !found {
		return false, err
	}
	var h Handled
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		return false, fmt.Errorf("read what was moved from store %s: %w", f.Store, err)
	}
	return h.covers(partition, f), nil
}
