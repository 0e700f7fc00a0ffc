package claimlog

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// agreement is what all processes must do alike with a log. The first one decides it, once.
type agreement struct {
	Version int     `json:"version"`
	ID      uint64  `json:"id"`
	Shards  int     `json:"shards"`
	Key     hashKey `json:"key"` // of the hash that chooses the shard of an ID
}

const (
	agreementKey = "log"
	// firstAgreement is about a log that begins with blocks of firstVersion. Later ones may follow,
	// see writing.
	firstAgreement = 1
	// agreementVersion is about a log in which all blocks are of the present version.
	agreementVersion = 2
)

// agree returns the agreement that stands, and makes one for a log of n shards if there is none.
func agree(ctx context.Context, r Registry, shards int) (a agreement, err error) {
	decided, err := r.Decided(ctx, agreementKey)
	if err == nil && decided == nil {
		decided, err = r.Decide(ctx, agreementKey, newAgreement(shards))
	}
	if err != nil {
		return a, fmt.Errorf("agree on the shards: %w", err)
	}
	return parseAgreement(decided, shards)
}

func parseAgreement(decided []byte, shards int) (a agreement, err error) {
	if err := json.Unmarshal(decided, &a); err != nil {
		return a, fmt.Errorf("agree on the shards: %q: %w", decided, err)
	}
	switch {
	case a.Version < firstAgreement || a.Version > agreementVersion:
		return a, fmt.Errorf("agree on the shards: version %d, this program knows %d: %w",
			a.Version, agreementVersion, errNewer)
	case a.Shards < 1 || a.Shards > shards:
		return a, fmt.Errorf("agree on the shards: %d were agreed on, and the log has %d: it is "+
			"not the one of the agreement", a.Shards, shards)
	}
	return a, nil
}

func newAgreement(shards int) []byte {
	var random [24]byte
	_, _ = rand.Read(random[:]) // never fails
	a := agreement{Version: agreementVersion, ID: binary.LittleEndian.Uint64(random[:]),
		Shards: shards, Key: hashKey(random[8:])}
	text, err := json.Marshal(a)
	if err != nil {
		panic(err) // numbers always have a text
	}
	return text
}
