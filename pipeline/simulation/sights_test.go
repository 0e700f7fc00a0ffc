//go:build !race

package simulation

import (
	"fmt"
	"strings"
)

// sight is a situation that the runs must have been in: a model that never gets there proves
// nothing about it.
type sight int

const (
	sightCommitted sight = iota // a batch was committed
	sightGivenBack              // a batch was given back
	sightRepeated               // at_least_once: an owner was forwarded again
	sightReplay                 // a replay was recognised
	sightMine                   // a record recognised a claim of an earlier batch as its own
	// a record that is not the first of its ID in its batch owns it
	sightFollower
	sightExpired       // an ID was claimed after its last claim had ended
	sightUnclaimed     // a record passed without an answer of the store
	sightZombieCommit  // a member that was given up tried to commit
	sightZombieFence   // at_least_once: a fence by a process that lost the partition
	sightFenced        // a producer was fenced
	sightCommitUnknown // the end of a transaction that was committed was not answered
	// at_least_once: a batch was polled while the offsets of the last one were on their way
	sightPolledAhead
	sightLateClaims     // a transaction was aborted because the claims took long
	sightFenceAwaited   // a fence could only be read after a transaction had ended
	sightUnstable       // an offset fetch had to wait for a transaction
	sightRewind         // a partition was set back
	sightLateClaim      // a late claim took effect
	sightSeekIgnored    // a client passed over a partition whose log it still validates
	sightPlaced         // partitions were set to their fences
	sightExpiredOffsets // the group had no offsets
	sightRenamed        // another group's fence was found
	sightInherited      // a copy stood for an owner that was compacted away
	sightCompacted      // a record was compacted away that owned an ID and was not forwarded
	sightRefused        // a topic refused records
	sightHeld           // a partition was held
	sightSkipped        // a record was skipped by an operator
	sightStopped        // a record without an ID ended a lane
	sightExempt         // a record passed for which only_if does not hold
	sightTombstone      // a record without a value went where on_tombstone says
	sightNarrow         // a partition had no counterpart yet
	// two clusters
	sightInputAway        // the input's was away when it was asked
	sightOutputAway       // the output's was
	sightPolledBlindly    // a member that was given up read on, and did not know it
	sightMovedWhilePolled // the group went on between a fetch and its session
	sightCut              // the end of the input's log was cut off
	sightWentBack         // a client went back to where the log was cut
	sightOutOfRange       // a client began at the log's beginning
	sights
)

var sightNames = [sights]string{
	"committed", "given back", "repeated", "replay", "mine", "owning follower", "expired",
	"unclaimed", "zombie commit",
	"zombie fence", "fenced", "commit unknown", "polled ahead", "late claims", "awaited fence",
	"unstable offset", "rewind", "late claim", "seek ignored", "placed", "expired offsets",
	"renamed", "inherited", "compacted owner", "refused", "held", "skipped", "stopped",
	"exempt", "tombstone", "narrow",
	"input away", "output away", "polled blindly", "moved while polled",
	"cut", "went back", "out of range",
}

// sightings counts situations.
type sightings [sights]int

func (s *sightings) saw(at sight) { s[at]++ }

func (s *sightings) add(o *sightings) {
	for i := range s {
		s[i] += o[i]
	}
}

func (s *sightings) String() string {
	var parts []string
	for i, n := range s {
		parts = append(parts, fmt.Sprintf("%s %d", sightNames[i], n))
	}
	return strings.Join(parts, ", ")
}

// never lists what was not seen.
func (s *sightings) never() (missing []string) {
	for i, n := range s {
		if n == 0 {
			missing = append(missing, sightNames[i])
		}
	}
	return missing
}
