// Package sabotage_test breaks the product on purpose, one guard at a time, and sees to it that the
// tests notice. A check that cannot fail proves nothing.
package sabotage_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// root is the module's directory, seen from here.
const root = "../.."

// sabotage is one guard that is taken away.
type sabotage struct {
	guard    string // what is switched off
	file     string
	old, new string // old occurs once in the file
	caughtBy string // package and tests that must fail, as arguments of go test
	tests    string
	server   func(testing.TB) string // that they need; nil: none
}

var sabotages = []sabotage{
	{
		guard: "a record that owns its ID recognises itself",
		file:  "dedup/verdict.go", old: "case own:", new: "case false:",
		caughtBy: "./pipeline", tests: "TestBatchesThatFailBeforeTheForwardAreRepeated",
	},
	{
		guard: "equal records of a batch compare the owner each for itself",
		file:  "dedup/fold.go", old: "answers[claim])",
		new: "answers[claim])\n\t\tif f.claims[claim].Owner != m.Owner " +
			"{\n\t\t\tjudgements[i].Verdict = VerdictDuplicate\n\t\t}",
		caughtBy: "./dedup", tests: "TestAFollowerThatOwnsTheIDRecognisesItself",
	},
	{
		guard:    "a line of the log waits for its reader, nobody else does",
		file:     "internal/logqueue/queue.go",
		old:      "q.lines = append(q.lines, bytes.Clone(line))",
		new:      "return q.to.Write(bytes.Clone(line))",
		caughtBy: "./internal/logqueue", tests: "TestNobodyWaitsForAReaderThatStandsStill",
	},
	{
		guard: "a record that is twice in a batch owns its ID once",
		file:  "dedup/fold.go", old: "&& !f.firstTold(claim)", new: "&& false",
		caughtBy: "./dedup", tests: "TestARecordThatIsTwiceInABatchOwnsItsIDOnce",
	},
	{
		guard: "a record whose schema is not known yet is not without an ID",
		file:  "dedup/resolve.go", old: "if batch.unresolved == 0 {", new: "if true {",
		caughtBy: "./dedup", tests: "TestABatchWaitsUntilItsIDsAreKnown",
	},
	{
		guard: "a record that is fetched twice is once in a batch",
		file:  "consumer/batch.go", old: "if records = b.notYet(records); len(records) == 0 {",
		new:      "if len(records) == 0 {",
		caughtBy: "./consumer", tests: "TestARecordThatIsFetchedTwiceIsOnceInABatch",
	},
	{
		guard: "an ID in a document that is cut off is no ID",
		file:  "dedup/messageid/json_scan.go", old: "if len(p) == 1 {", new: "if false {",
		caughtBy: "./dedup/messageid", tests: "TestJSONField",
	},
	{
		guard: "what only_if leaves out passes in every mode",
		file:  "pipeline/policy.go", old: "dedup.VerdictUnclaimed, dedup.VerdictExempt:",
		new:      "dedup.VerdictUnclaimed:",
		caughtBy: "./pipeline", tests: "TestRecordsThatOnlyIfLeavesOutPassUntouchedInEveryMode",
	},
	{
		guard: "a tombstone that is told apart claims nothing",
		file:  "dedup/messageid/condition.go", old: "if r.Value == nil {", new: "if false {",
		caughtBy: "./dedup/messageid", tests: "TestTombstonesAreToldApart",
	},
	{
		guard:    "a value that lacks a field that counts counts as a whole",
		file:     "dedup/messageid/content.go",
		old:      "if missing == dedup.MissingAbsent && c.documents != nil {",
		new:      "if missing == dedup.MissingAbsent {",
		caughtBy: "./dedup/messageid", tests: "TestContentIsWhatCounts",
	},
	{
		guard:    "a record whose content needs a schema waits for it",
		file:     "dedup/messageid/content.go",
		old:      "if missing == dedup.NotMissing && c.unresolved(r) {",
		new:      "if false {",
		caughtBy: "./dedup/messageid", tests: "TestRecordsWaitForTheSchemasOfTheirContent",
	},
	{
		guard:    "a message with a field that its schema does not have counts as a whole",
		file:     "internal/protopath/document.go",
		old:      "|| !known(m) {",
		new:      "{",
		caughtBy: "./internal/protopath", tests: "TestWhatIsNoMessageIsNoDocument",
	},
	{
		guard: "an outage that nobody saw go on is over",
		file:  "dedup/outage.go", old: "o.forget()\n\treturn context.Cause(ctx)",
		new:      "return context.Cause(ctx)",
		caughtBy: "./dedup", tests: "TestAFailureLongAfterAnOutageBeginsAnother",
	},
	{
		guard: "a batch that did not get through is followed by a smaller one",
		file:  "consumer/room.go", old: "r.setLocked(batch.share(1. / roomCut))",
		new:      "_ = roomCut",
		caughtBy: "./consumer", tests: "TestBatchesAreAsLargeAsTheirTimeHasRoomFor",
	},
	{
		guard: "undecided claims are claimed again",
		file:  "dedup/retry.go", old: "for round := 1; len(open) > 0; round++ {",
		new:      "for round := 1; len(open) > len(claims); round++ {",
		caughtBy: "./pipeline", tests: "TestAmbiguousClaimsLoseAndDoubleNothing",
	},
	{
		guard: "the fence tells a rewind from a redelivery",
		file:  "fence/fence.go", old: "return offset < f.Next() &&",
		new:      "return false && offset < f.Next() &&",
		caughtBy: "./pipeline", tests: "TestARewoundGroupForwardsNothingTwice",
	},
	{
		guard: "the fence is the last one that was committed",
		file:  "fence/reader.go", old: "return !found && t.back(t.low)", new: "return false",
		caughtBy: "./fence", tests: "TestTheLastCommittedFenceIsFound/fake",
	},
	{
		guard: "a fence topic from which fences are deleted is refused",
		file:  "internal/kafka/topics.go",
		old:   `return topic["retention.ms"].value == "-1" &&`, new: "return true ||",
		caughtBy: "./internal/kafka", tests: "TestAFenceTopicThatKeepsAllFencesIsTaken/fake",
	},
	{
		guard: "where producer IDs are refused, records go without",
		file:  "consumer/client/idempotence.go",
		old:   "return []kgo.Opt{kgo.DisableIdempotentWrite()}, nil", new: "return nil, nil",
		caughtBy: "./consumer/client", tests: "TestWithoutIdempotentProducersTheOrderHolds",
	},
	{
		guard: "a claim that is younger than the fence is no replay",
		file:  "dedup/verdict.go", old: "&& !a.ClaimedAt.After(m.Settled):", new: ":",
		caughtBy: "./pipeline", tests: "TestACopyThatClaimsAnewBelowTheFenceIsForwarded",
	},
	{
		guard: "the copy of an owner that was compacted away is forwarded",
		file:  "pipeline/lane.go", old: "inherit(b, judgements)\n", new: "\n",
		caughtBy: "./pipeline", tests: "TestTheCopyOfACompactedOwnerIsForwarded",
	},
	{
		guard: "what a fence passed without its delivery is remembered",
		file:  "fence/fence.go", old: "for _, r := range s.Missing {",
		new:      "for _, r := range s.Missing[:0] {",
		caughtBy: "./pipeline",
		tests:    "TestTheCopyThatComesAfterACompactedOwnerWasPassedIsForwarded",
	},
	{
		guard:    "the old client's view of a dead-letter topic does not outlive the topic",
		file:     "pipeline/errors.go",
		old:      "case errors.Is(err, kerr.UnknownTopicID):\n\t\treturn rejoin",
		new:      "case false:\n\t\treturn rejoin",
		caughtBy: "./pipeline", tests: "TestARecreatedDeadLetterTopicTakesWhatWaitedForTheOldOne",
	},
	{
		guard:    "a scope goes on by what its preset stood for when it was made",
		file:     "cmd/kdedup/internal/wiring/entries.go",
		old:      "e.Extractor, e.KeepsEarlier = was, true",
		new:      "e.Extractor = e.Extractor.As(registered)",
		caughtBy: "./cmd/kdedup/internal/wiring",
		tests:    "TestAScopeGoesOnByWhatItsPresetStoodForWhenItWasMade",
	},
	{
		guard: "the clean topic has the codec of the input",
		file:  "forwarder/send.go", old: "if o.topics.Input != nil {", new: "if false {",
		caughtBy: "./forwarder", tests: "TestBatchesAreCompressedAsTheInputIs",
	},
	{
		guard: "an owner that is gone from the input proves nothing",
		file:  "internal/offsets/proof.go", old: "case p.options.Originals:",
		new:      "case true:\n\t\t\tproven[i] = true\n\t\tcase false:",
		caughtBy: "./internal/offsets",
		tests:    "TestWhateverThePastAConsumerMissesNothingAndRepeatsWhatIsSaid",
	},
	{
		guard: "a consumer goes back before all that it has not had",
		file:  "internal/offsets/back.go", old: "w.bound = min(w.bound, r.offset)",
		new:      "_ = r.offset",
		caughtBy: "./internal/offsets",
		tests:    "TestWhateverThePastAConsumerMissesNothingAndRepeatsWhatIsSaid",
	},
	{
		guard: "times are no evidence where records of the input are gone",
		file:  "internal/offsets/times.go", old: "r.Offset == next[r.Partition] &&",
		new:      "",
		caughtBy: "./internal/offsets",
		tests:    "TestWhateverThePastAConsumerMissesNothingAndRepeatsWhatIsSaid",
	},
	{
		guard: "IDs that came again are counted",
		file:  "internal/offsets/clean.go", old: "\tf.removeFrom(owner)\n", new: "",
		caughtBy: "./internal/offsets",
		tests:    "TestIDsThatCameAgainAreCounted",
	},
	{
		guard: "a group without offsets begins at its fences",
		file:  "consumer/start.go", old: "case !known && f.Next() > 0 && f.Of(input):",
		new:      "case false:",
		caughtBy: "./pipeline", tests: "TestExpiredOffsetsForwardNothingAgain",
	},
	{
		guard: "offsets that kdedup did not commit are not believed",
		file:  "consumer/start.go", old: "if len(unfenced) > 0 && !m.opts.AcceptSkips {",
		new:      "if false {",
		caughtBy: "./pipeline", tests: "TestOffsetsOfAnotherProgramAreNotBelieved",
	},
	{
		guard: "kdedup's offsets bear its mark",
		file:  "consumer/client/vouch.go", old: "return strings.HasPrefix(text, markPrefix)",
		new:      "return false",
		caughtBy: "./pipeline", tests: "TestAGroupGoesOnWithoutItsFences",
	},
	{
		guard: "members that are not kdedup's are refused",
		file:  "consumer/client/strangers.go", old: "if !reads || g.lane(clientID) {",
		new:      "if true {",
		caughtBy: "./consumer/client", tests: "TestMembersThatAreNotKdedupsAreRefused/fake",
	},
	{
		guard: "a start waits for servers that do not answer",
		file:  "cmd/kdedup/internal/process/outage.go", old: "if !outage(err) {", new: "if true {",
		caughtBy: "./cmd/kdedup", tests: "TestAStartWaitsForKafka/fake",
	},
	{
		guard: "a first batch without any message ID is held",
		file:  "pipeline/lane.go", old: "if err := l.identify(work, judgements); err != nil {",
		new:      "if err := l.identify(work, nil); err != nil {",
		caughtBy: "./pipeline", tests: "TestAFirstBatchWithoutAnyIDIsHeldWhileTheInputShowsNone",
	},
	{
		guard: "topics are made with the input's retention",
		file:  "internal/kafka/setup.go", old: "s.inherited(\"retention.ms\", \"retention.bytes\")",
		new:      "s.inherited(\"retention.bytes\")",
		caughtBy: "./internal/kafka", tests: "TestSetupMakesTopicsLikeTheInput/fake",
	},
	{
		guard: "a store that knows nothing of what was handled is refused",
		file:  "cmd/kdedup/internal/wiring/identity.go", old: "strange = append(strange, f)",
		new:      "_ = f",
		caughtBy: "./cmd/kdedup",
		tests:    "TestAStoreThatKnowsNothingIsRefusedUntilItIsAccepted/fake",
	},
	{
		guard: "a lane goes on at no fence of another store",
		file:  "consumer/start.go", old: "if m.opts.CheckStore == nil {", new: "if true {",
		caughtBy: "./pipeline", tests: "TestFencesOfAnotherStoreHoldTheLane",
	},
	{
		guard: "claims are not moved while a group has members",
		file:  "cmd/kdedup/internal/migration/migration.go",
		old: "for _, p := range m.pairs {\n\t\tif err := m.refuseMembers(ctx, p); err != nil {\n" +
			"\t\t\treturn m, err",
		new: "for _, p := range m.pairs {\n\t\tif err := m.refuseMembers(ctx, p); err != nil {\n" +
			"\t\t\tcontinue",
		caughtBy: "./cmd/kdedup", tests: "TestNothingIsMovedWhileSomebodyClaims",
	},
	{
		guard: "a process that starts while claims are moved is noticed",
		file:  "cmd/kdedup/internal/migration/end.go",
		old:   "if err := s.nobodyCame(ctx, before); errors", new: "if err := error(nil); errors",
		caughtBy: "./cmd/kdedup", tests: "TestAProcessThatStartsInTheMiddleIsNoticed",
	},
	{
		guard:    "a copy of claims that differs is not accepted",
		file:     "cmd/kdedup/internal/migration/step.go",
		old:      "s.pair.old, c.Old, c.New, c.Differ.Count))\n\tif c.Differ.Count > 0 {",
		new:      "s.pair.old, c.Old, c.New, c.Differ.Count))\n\tif false {",
		caughtBy: "./cmd/kdedup", tests: "TestAClaimThatOnlyTheNewStoreHasIsADifference",
	},
	{
		guard: "a store in which claims are missing is refused",
		file:  "cmd/kdedup/internal/wiring/moved.go",
		old:   "if err != nil || !missing {", new: "if err != nil || missing || !missing {",
		caughtBy: "./cmd/kdedup", tests: "TestAMoveThatHasNotEndedWellIsNotAccepted",
	},
	{
		guard: "a store whose claims were moved away is refused",
		file:  "cmd/kdedup/internal/wiring/moved.go",
		old:   "if err != nil || !moved {", new: "if err != nil || moved || !moved {",
		caughtBy: "./cmd/kdedup", tests: "TestClaimsMoveToAnotherStoreAndBack",
	},
	{
		guard: "a lane whose claims were moved away takes nothing",
		file:  "consumer/start.go", old: "if m.opts.CheckScope != nil {",
		new:      "if m.opts.CheckScope != nil && false {",
		caughtBy: "./pipeline", tests: "TestALaneWhoseClaimsWereMovedAwayTakesNothing",
	},
	{
		guard: "a store stands for another one up to the fences of the move",
		file:  "cmd/kdedup/internal/wiring/moved.go", old: "&& now.Next <= known.Next &&",
		new:      "&&",
		caughtBy: "./cmd/kdedup/internal/wiring",
		tests:    "TestANewStoreStandsForTheOldOneUpToItsFences",
	},
	{
		guard: "the input of another cluster is refused",
		file:  "cmd/kdedup/internal/wiring/identity.go",
		old:   "k.cluster == \"\" || noted == k.cluster {", new: "true {",
		caughtBy: "./cmd/kdedup", tests: "TestAMirrorOfTheInputIsRefusedAndGoesOnInAScopeOfItsOwn",
	},
	{
		guard: "a second group of a scope is refused",
		file:  "consumer/start.go", old: "if active {", new: "if active && false {",
		caughtBy: "./pipeline", tests: "TestASecondGroupOfTheSameScopeIsRefused",
	},
	{
		guard:    "a topic ID that is not told fits to any",
		file:     "dedup/store.go",
		old:      "(c.TopicID == o.TopicID || c.TopicID == [16]byte{} || o.TopicID == [16]byte{})",
		new:      "c.TopicID == o.TopicID",
		caughtBy: "./pipeline", tests: "TestTopicIDsMayAppearAndDisappear",
	},
	{
		guard: "a partition that came back while its records were polled ends the session",
		file:  "consumer/redelivery.go", old: "m.taken[p] && m.ownsLocked(p)",
		new:      "m.taken[p] && m.ownsLocked(p) && false",
		caughtBy: "./pipeline/simulation", tests: "TestModel",
	},
	{
		guard: "a claim that is made again is later than what the fence settles",
		file:  "dedup/fold.go", old: ", After: m.Settled}", new: "}",
		caughtBy: "./pipeline", tests: "TestAClaimMadeAgainIsLaterThanItsFenceWhateverTheClockSays",
	},
	{
		guard: "the fence waits for transactions that are open",
		file:  "fence/reader.go", old: "list := admin.ListEndOffsets\n",
		new:      "list := admin.ListCommittedOffsets\n",
		caughtBy: "./fence", tests: "TestAnOpenTransactionIsWaitedFor/fake",
	},
	{
		guard: "offsets above the fence are not believed",
		file:  "consumer/start.go", old: "case !known || at <= f.Next():", new: "case true:",
		caughtBy: "./pipeline",
		tests:    "TestOffsetsThatWereMovedForwardSkipNothing/accept=false/exactly_once",
	},
	{
		guard: "a lane that joins ends what its predecessor left open",
		file:  "consumer/client/takeover.go",
		old:   "t.id, t.epoch = answer.ProducerID, answer.ProducerEpoch\n\treturn", new: "return",
		caughtBy: "./consumer/client", tests: "TestATakeoverEndsWhatThePredecessorLeftOpen/fake",
	},
	{
		guard: "a transaction that was committed is not aborted where its markers are missing",
		file:  "consumer/client/takeover.go", old: "t.commit = t.last.State == \"CompleteCommit\"",
		new:      "t.commit = false",
		caughtBy: "./consumer/client", tests: "TestATakeoverEndsTransactionsWhoseMarkersAreLost",
	},
	{
		guard: "no transaction is ended behind one whose markers are missing",
		file:  "consumer/transactional.go", old: "if errors.Is(why, ErrMarkersLost) {",
		new:      "if false {",
		caughtBy: "./consumer", tests: "TestASessionEndsNoTransactionBehindLostMarkers",
	},
	{
		guard: "a lane that joins ends what was left open under its name before",
		file:  "consumer/client/transactional_id.go", old: "return takeOver(ctx, &earlier)",
		new:      "return ctx.Err()",
		caughtBy: "./consumer/client",
		tests:    "TestAnUpgradeEndsWhatWasLeftOpenUnderTheEarlierName/fake",
	},
	{
		guard: "a refused record is looked for among smaller and smaller parts",
		file:  "forwarder/isolate.go", old: "q.chunk = (n + 1) / 2", new: "q.chunk = 1",
		caughtBy: "./forwarder", tests: "TestOneRefusedRecordIsFoundByHalving",
	},
	{
		guard: "only what was not written is sent again",
		file:  "forwarder/isolate.go", old: "if !failed {\n\t\t\ts.took(out)\n\t\t\tcontinue",
		new:      "if !failed {\n\t\t\ts.took(out)",
		caughtBy: "./forwarder", tests: "TestRefusedRecordsAreFoundAndTheOthersKeepTheirOrder",
	},
	{
		guard: "a record is refused only if it was alone in its batch",
		file:  "forwarder/isolate.go", old: "case 1: // its batch",
		new:      "case 1, 2, 3: // its batch",
		caughtBy: "./forwarder", tests: "TestRefusedRecordsAreFoundAndTheOthersKeepTheirOrder",
	},
	{
		guard: "what is behind a held record waits",
		file:  "consumer/hold.go", old: "withheld(records[at].Offset)\n", new: "\n",
		caughtBy: "./pipeline/simulation", tests: "TestModel",
	},
	{
		guard: "a held record comes again though the client did not hear where to go on",
		file:  "consumer/hold.go", old: "at, waiting := m.returned[p]\n",
		new:      "at, waiting := int64(0), false\n",
		caughtBy: "./consumer",
		tests:    "TestAHeldRecordComesAgainThoughTheClientDidNotHearWhereToGoOn",
	},
	{
		guard: "no rebalance waits for records that are withheld",
		file:  "consumer/poll.go", old: "m.client.AllowRebalance() // which", new: "// which",
		caughtBy: "./consumer",
		tests:    "TestAHeldRecordComesAgainThoughTheClientDidNotHearWhereToGoOn",
	},
	{
		guard: "a batch that is given back goes back to where it begins",
		file:  "consumer/at_least_once.go", old: "a.goBack(b)\n",
		new:      "a.client.Seek(a.client.Committed())\n\ta.giveBack(b)\n",
		caughtBy: "./pipeline/simulation", tests: "TestModel",
	},
	{
		guard: "a panic is that of one record",
		file:  "dedup/tripped.go", old: "*err = &Tripped{",
		new:      "*err = fmt.Errorf(\"panic: %v\", p)\n\t\t_ = &Tripped{",
		caughtBy: "./pipeline", tests: "TestARecordThatPanicsHoldsItsPartitionByItself",
	},
	{
		guard: "a skip is about one record",
		file:  "consumer/batch.go", old: "s == nil || s.Offset != r.Offset ||", new: "s == nil ||",
		caughtBy: "./pipeline/simulation", tests: "TestModel",
	},
	{
		guard: "a skip of a record that is done means nothing",
		file:  "fence/reader.go", old: "r.skips[t.partition].Offset < f.Next()",
		new:      "f.Next() < 0",
		caughtBy: "./fence", tests: "TestTheLastSkipOfARecordThatIsNotDoneIsFound/fake",
	},
	{
		guard: "what was acknowledged of a batch that is given back is not sent again",
		file:  "pipeline/plan.go", old: "p.outgoing.Truncate(before)", new: "_ = before",
		caughtBy: "./pipeline/simulation", tests: "TestModel",
	},
	{
		guard: "a dead letter that has another reason now is written again",
		file:  "pipeline/plan.go", old: "p.outgoing.Last() == sent {",
		new:      "p.outgoing.Last().Topic == sent.Topic {",
		caughtBy: "./pipeline", tests: "TestWhatIsWrittenIsSentAgainOnlyWithAnotherWord",
	},
	{
		guard: "nothing is sent while a batch is added",
		file:  "forwarder/topics.go", old: "kgo.ManualFlushing(),", new: "kgo.ProducerLinger(0),",
		caughtBy: "./forwarder", tests: "TestNothingIsSentBeforeTheFlush",
	},
	{
		guard: "what is missing is remembered until its claims have ended by every clock",
		file:  "consumer/member.go", old: "m.opts.TTL + clocksDiffer", new: "m.opts.TTL",
		caughtBy: "./consumer",
		tests:    "TestAMissingRecordIsRememberedUntilItsClaimHasEndedByEveryClock",
	},
	{
		guard: "a failed produce aborts its batch",
		file:  "forwarder/isolate.go", old: "if !isRefusal(err) {", new: "if false {",
		caughtBy: "./pipeline", tests: "TestAFailedProduceAbortsItsBatch",
	},
	{
		guard: "an aborted transaction is not committed",
		file:  "consumer/transactional.go", old: "t.kafka.End(ctx, false)",
		new:      "t.kafka.End(ctx, true)",
		caughtBy: "./pipeline", tests: "TestAFailedProduceAbortsItsBatch/exactly_once",
	},
	{
		guard: "a transaction that has nothing but offsets is aborted, too",
		file:  "consumer/transactional.go", old: "if len(b.Spans) > 0 {", new: "if false {",
		caughtBy: "./consumer", tests: "TestABatchIsGivenBackBeforeItsForwards/fake",
	},
	{
		guard: "a batch whose partitions were taken away is not committed",
		file:  "consumer/transactional.go", old: "if t.wasTaken() {",
		new:      "if t.wasTaken() && false {",
		caughtBy: "./consumer", tests: "TestABatchThatWasTakenAwayIsNotCommitted/fake",
	},
	{
		guard: "with at_least_once a batch that was given back is read again",
		file:  "consumer/at_least_once.go", old: "a.goBack(b)\n", new: "",
		caughtBy: "./pipeline", tests: "TestABatchThatIsGivenBackIsReadAgain/at_least_once",
	},
	{
		guard: "with at_least_once partitions are kept until their offsets are committed",
		file:  "consumer/at_least_once.go", old: "_ = a.offsets.Load().wait() }",
		new:      "_ = a.offsets.Load() }",
		caughtBy: "./consumer", tests: "TestARevocationWaitsForTheOffsets",
	},
	{
		guard: "with at_least_once nothing is forwarded by a member whose offsets were refused",
		file:  "consumer/at_least_once.go", old: "a.started = time.Now()\n\treturn a.committed()",
		new:      "return nil",
		caughtBy: "./consumer", tests: "TestRefusedOffsetsEndTheSession",
	},
	{
		guard: "a member does not go on behind records that others have handled",
		file:  "consumer/transactional.go", old: "at.Offset > mine",
		new:      "at.Offset > mine && false",
		caughtBy: "./consumer", tests: "TestAMemberThatTheGroupHasGivenUpEndsItsSession",
	},
	{
		guard: "records of aborted transactions are not read",
		file:  "consumer/client/client.go", old: "kgo.ReadCommitted()",
		new:      "kgo.ReadUncommitted()",
		caughtBy: "./pipeline", tests: "TestAbortedInputClaimsNothing",
	},
	{
		guard: "a backfill claims only what is committed",
		file:  "internal/logreader/read.go", old: "return kgo.ReadCommitted()",
		new:      "return kgo.ReadUncommitted()",
		caughtBy: "./internal/backfill", tests: "TestWhatIsNotCommittedClaimsNothing",
	},
	{
		guard:    "a group that starts at the end commits where that is",
		file:     "consumer/client/start_decision.go",
		old:      "offsets.Add(g.offsetAt(s.here, p, end.Offset, end.LeaderEpoch))",
		new:      "",
		caughtBy: "./consumer/client",
		tests:    "TestPinStartCommitsTheEndOnce/fake",
	},
	{
		guard:    "what one entry lacks stops no other one",
		file:     "cmd/kdedup/internal/process/admit.go",
		old:      "if err == nil || len(entries) == 0",
		new:      "if true || len(entries) == 0",
		caughtBy: "./cmd/kdedup/internal/process",
		tests:    "TestWhatOneEntryLacksStopsNoOtherOne",
	},
	{
		guard:    "a partition without a counterpart waits by itself",
		file:     "consumer/narrow.go",
		old:      "if reason, is := narrow[p]; is {",
		new:      "if reason, is := narrow[p]; is && reason == \"\" {",
		caughtBy: "./pipeline",
		tests:    "TestNewInputPartitionsWaitForTheOthers",
	},
	{
		guard:    "a mark vouches for its own place alone",
		file:     "consumer/client/vouch.go",
		old:      "return marked(text) && whole",
		new:      "return marked(text) || whole",
		caughtBy: "./consumer/client",
		tests:    "TestCopiedMarksAreWorthNothing/fake",
	},
	{
		guard:    "a mark that names no place is believed at home",
		file:     "cmd/kdedup/internal/wiring/identity.go",
		old:      `if err != nil || k.cluster == "" || found && noted == k.cluster {`,
		new:      "if noted != k.cluster || found {",
		caughtBy: "./cmd/kdedup",
		tests:    "TestOffsetsThatAMirrorCopiedAreRefusedThere",
	},
	{
		guard:    "where a group begins outlives its offsets",
		file:     "consumer/client/start.go",
		old:      "g.writeStarts(ctx, client, starts)",
		new:      "g.writeStarts(ctx, client, nil)",
		caughtBy: "./consumer/client",
		tests:    "TestAStartOutlivesTheOffsetsOfTheGroup/fake",
	},
	{
		guard:    "what comes after the first start is read from its beginning",
		file:     "consumer/client/start.go",
		old:      "first := !sight.began()",
		new:      "first := true",
		caughtBy: "./consumer/client",
		tests:    "TestAPartitionAddedAfterTheFirstStartBeginsAtItsBeginning/fake",
	},
	{
		guard:    "a first start that was interrupted has not begun",
		file:     "consumer/client/start_decision.go",
		old:      "last = append(last, r)",
		new:      "records = append(records, r)",
		caughtBy: "./consumer/client",
		tests:    "TestTheStartOfPartition0ComesLast",
	},
	{
		guard:    "processes that begin together take the lower start",
		file:     "consumer/client/start_decision.go",
		old:      "if !some || other.Next() >= start.Next() {",
		new:      "if !some || other.Next() <= start.Next() {",
		caughtBy: "./consumer/client",
		tests:    "TestProcessesThatBeginTogetherAgreeOnTheLowerStart/fake",
	},
	{
		guard:    "a pattern begins once",
		file:     "cmd/kdedup/internal/process/starts.go",
		old:      "if err == nil && !began {",
		new:      "if err == nil && (began || !began) {",
		caughtBy: "./cmd/kdedup/internal/process",
		tests:    "TestAPatternThatStartsAtTheEndDoesSoOnce",
	},
	{
		guard: "no node of another data centre decides",
		file:  "dedup/cassandra/options.go", old: `if o.LocalDC != "" {`, new: "if false {",
		caughtBy: "./dedup/cassandra", tests: "TestNodesOfOtherDataCentresAreNotAsked",
	},
	{
		guard: "a claim in the log ends at the time of a block",
		file:  "dedup/claimlog/judge.go", old: "!found || ends <= now", new: "!found",
		caughtBy: "./dedup/claimlog", tests: "TestModel",
	},
	{
		guard:    "an index of a log that was cut is made again",
		file:     "dedup/claimlog/space.go",
		old:      "if errors.Is(err, ErrCut) || errors.Is(err, errIndex) {\n\t\t\ts.log",
		new:      "if errors.Is(err, errIndex) {\n\t\t\ts.log",
		caughtBy: "./dedup/claimlog",
		tests:    "TestAnIndexIsNotBelievedAfterTheLogWasCut/cut,_memory",
	},
	{
		guard: "a process claims nothing in a log that took the place of another",
		file:  "dedup/claimlog/space.go", old: "if found != k.first {", new: "if false {",
		caughtBy: "./dedup/claimlog",
		tests:    "TestALogThatTookThePlaceOfAnotherIsNotClaimedIn/recreated,_memory",
	},
	{
		guard: "an index that does not go as far as its progress says is made again",
		file:  "dedup/claimlog/files.go", old: "if p.Files != nil {", new: "if false {",
		caughtBy: "./dedup/claimlog", tests: "TestModel",
	},
	{
		guard:    "a block whose time no clock explains claims nothing",
		file:     "dedup/claimlog/time.go",
		old:      "case by > late:",
		new:      "case by > late && late < 0:",
		caughtBy: "./dedup/claimlog", tests: "TestModel",
	},
	{
		guard: "claims do not end early for a broker whose clock is behind",
		file:  "dedup/claimlog/time.go", old: "m.grace = min(-by, mostGrace.Milliseconds())",
		new:      "m.grace = 0 * mostGrace.Milliseconds()",
		caughtBy: "./dedup/claimlog", tests: "TestModel",
	},
	{
		guard:    "the time of a claim log goes back to what it is",
		file:     "dedup/claimlog/time.go",
		old:      "m := moment{now: e.Time}",
		new:      "m := moment{now: max(e.Time, s.Time)}",
		caughtBy: "./dedup/claimlog", tests: "TestModel",
	},
	{
		guard:    "a block that comes late does not undo a release",
		file:     "dedup/claimlog/judge.go",
		old:      " || strict && s.removedSince(b.scope, b.seen.Next)",
		caughtBy: "./dedup/claimlog", tests: "TestModel",
	},
	{
		guard:    "a block that comes late does not revive a claim that has ended",
		file:     "dedup/claimlog/judge.go",
		old:      "\t\t\tif strict {\n\t\t\t\tcontinue\n\t\t\t}\n",
		caughtBy: "./dedup/claimlog", tests: "TestModel",
	},
	{
		guard:    "a release removes also what has ended by a wrong time",
		file:     "dedup/claimlog/judge.go",
		old:      "_, ends, found, err := m.last(m.key, 0)\n\tif err == nil && found {",
		new:      "_, ends, found, err := m.get(m.key, m.shards[0].Time)\n\tif err == nil && found {",
		caughtBy: "./dedup/claimlog", tests: "TestModel",
	},
	{
		guard:    "a gap in the claim log is not a cut",
		file:     "dedup/claimlog/machine.go",
		old:      "if e.At < s.Next || e.Epoch < s.Epoch {",
		new:      "if e.At != s.Next || e.Epoch < s.Epoch {",
		caughtBy: "./dedup/claimlog", tests: "TestModel",
	},
	{
		guard:    "an owner that was replaced does not come back",
		file:     "dedup/claimlog/judge.go",
		old:      "if ends < s.Latest {",
		new:      "if false {",
		caughtBy: "./dedup/claimlog",
		tests:    "TestAnOwnerThatWasReplacedDoesNotComeBack",
	},
	{
		guard:    "a block of an older version behind a newer one counts for nothing",
		file:     "dedup/claimlog/machine.go",
		old:      "case b.version < s.Version:",
		new:      "case false:",
		caughtBy: "./dedup/claimlog", tests: "TestModel",
	},
	{
		guard:    "the end of a transaction in the claims topic has a place",
		file:     "dedup/claimlog/kafkalog/logs.go",
		old:      "kgo.KeepControlRecords(), // they have places",
		caughtBy: "./dedup/claimlog/kafkalog",
		tests:    "TestTheEndOfATransactionIsAPlaceWithoutABlock",
	},
	{
		guard: "a claim log that keeps a refused producer ID is opened again",
		file:  "dedup/claimlog/kafkalog/log.go", old: "if stays(err) {", new: "if false {",
		caughtBy: "./dedup/claimlog/kafkalog", tests: "TestARefusedProducerIDIsAskedForAgain",
	},
	{
		guard:    "what a claims topic must not be is noticed while it is read",
		file:     "dedup/claimlog/kafkalog/read.go",
		old:      "case errors.Is(err, errSetting) || errors.Is(err, claimlog.ErrCut):",
		new:      "case false:",
		caughtBy: "./dedup/claimlog/kafkalog",
		tests:    "TestSettingsThatChangeLaterStopTheClaims/message.timestamp.type/fake",
	},
	{
		guard: "a look-up goes by the clock of the log",
		file:  "dedup/claimlog/claim.go", old: "now, known := s.clock.now()",
		new:      "now, known := s.store.o.now().UnixMilli(), true",
		caughtBy: "./dedup/claimlog", tests: "TestALookUpGoesByTheClockOfTheLog",
	},
	{
		guard: "a claim log that lost its beginning is not claimed in",
		file:  "dedup/claimlog/beginning.go", old: "if !ends.After(now) {",
		new:      "if !ends.After(now) || true {",
		caughtBy: "./dedup/claimlog",
		tests:    "TestALogThatLostItsBeginningIsNotClaimedInUntilThatIsAccepted",
	},
	{
		guard:    "claims that hold for longer than the log keeps blocks are written again",
		file:     "dedup/claimlog/carry.go",
		old:      "if r.machine.longest() <= (kept - Margin).Milliseconds() {",
		new:      "if true {",
		caughtBy: "./dedup/claimlog", tests: "TestALoweredTTLForgetsNoClaimThatStillHolds",
	},
	{
		guard:    "an imported claim is kept until it ends",
		file:     "dedup/claimlog/move.go",
		old:      "c.keep = longest(claims, time.Now())",
		new:      "c.keep = scope.TTL",
		caughtBy: "./dedup/claimlog", tests: "TestAnImportedClaimIsKeptUntilItEnds",
	},
	{
		guard: "a block that comes late claims nothing",
		file:  "dedup/claimlog/judge.go", old: "now-seen.Time <= late", new: "late > 0",
		caughtBy: "./dedup/claimlog", tests: "TestALateBlockClaimsNothing",
	},
	{
		guard: "a renewal that comes late does not count",
		file:  "dedup/claimlog/renew.go", old: "!b.reaches(e, now, m.late) || ",
		caughtBy: "./dedup/claimlog", tests: "TestModel",
	},
	{
		guard:    "a claim that was released is not renewed",
		file:     "dedup/claimlog/renew.go",
		old:      " || s.removedSince(b.scope, b.seen.Next)",
		caughtBy: "./dedup/claimlog",
		tests:    "TestARenewalBehindAReleaseDoesNotCount",
	},
	{
		guard: "a claim that has ended is not renewed",
		file:  "dedup/claimlog/renew.go", old: "if life.ends <= now {", new: "if false {",
		caughtBy: "./dedup/claimlog", tests: "TestModel",
	},
	{
		guard: "what a block in the log is judged by outlives it",
		file:  "dedup/claimlog/claim.go", old: "if !outlasts {", new: "if !outlasts && false {",
		caughtBy: "./dedup/claimlog", tests: "TestWhatABlockIsJudgedByOutlivesIt",
	},
	{
		guard:    "a copy that loses against a claim in the log renews it",
		file:     "dedup/claimlog/space.go",
		old:      "if err := mine.reopenDue(r.machine); err != nil {",
		new:      "if err := error(nil); err != nil {",
		caughtBy: "./dedup/claimlog",
		tests:    "TestACopyThatLosesAgainstAClaimRenewsItIfItIsDue",
	},
	{
		guard: "a renewal that is told was made",
		file:  "dedup/embedded/scope.go", old: "s.put(key, &owner, p.ends)", new: "_ = key",
		caughtBy: "./dedup/embedded",
		tests:    "TestConformance/sliding/a_renewal_changes_only_the_end",
	},
	{
		guard: "a known ID is looked up again once claims of its shard were removed",
		file:  "dedup/claimlog/known.go", old: "m.removals[shard] == k.removals && ",
		caughtBy: "./dedup/claimlog",
		tests:    "TestAnOwnerThatGoesWhileItsIDIsClaimedIsNotTheAnswer/released",
	},
	{
		guard: "a known ID is looked up again once one of them has ended",
		file:  "dedup/claimlog/known.go", old: " && m.shards[shard].Time < k.until",
		caughtBy: "./dedup/claimlog",
		tests:    "TestAnOwnerThatGoesWhileItsIDIsClaimedIsNotTheAnswer/ended",
	},
	{
		guard: "a block that is applied once more looks into the whole index",
		file:  "dedup/claimlog/machine.go", old: "if e.At >= ahead.Next { // otherwise",
		new:      "if true { // otherwise",
		caughtBy: "./dedup/claimlog", tests: "TestBlocksThatAreAppliedOnceMoreDecideAsBefore",
	},
	{
		guard: "the time of a claim log in Cassandra does not go back for a clock that is a little behind",
		file:  "dedup/claimlog/cassandralog/append.go",
		old:   "rows[i].time += max(0, ahead)", new: "_ = ahead",
		caughtBy: "./dedup/claimlog/cassandralog", tests: "TestABlockIsNeverBeforeTheOneInFront",
	},
	{
		guard:    "what is in front of a block in Cassandra expires no later",
		file:     "dedup/claimlog/cassandralog/append.go",
		old:      "max(rows[i].time+p.keep.Milliseconds(), front.ends)",
		new:      "rows[i].time + p.keep.Milliseconds()",
		caughtBy: "./dedup/claimlog/cassandralog", tests: "TestABlockIsNeverBeforeTheOneInFront",
	},
	{
		guard: "a clock far from that of the nodes gives no block its time",
		file:  "dedup/claimlog/cassandralog/log.go", old: "if ahead <= clockTolerance {",
		new:      "if ahead < 1<<62 {",
		caughtBy: "./dedup/claimlog/cassandralog", tests: "TestAClockFarFromTheNodesIsRefused",
	},
	{
		guard: "two calls about one ID run one after the other",
		file:  "dedup/embedded/scope.go", old: "deciding: make(chan struct{}, 1)",
		new:      "deciding: make(chan struct{}, 2)",
		caughtBy: "./dedup/embedded", tests: "TestAClaimWaitsForACallAboutItsID",
	},
	{
		guard: "an answer of the embedded store is durable",
		file:  "dedup/embedded/claim.go", old: "return state.sync(ctx, mark)",
		new:      "_ = mark\n\treturn nil",
		caughtBy: "./dedup/embedded", tests: "TestOnlyWhatIsDurableIsTold",
	},
	{
		guard: "what is read in the embedded store's files is waited for, too",
		file:  "internal/hashlog/append.go", old: "mark := l.syncs.note()",
		new:      "mark := l.syncs.latest()",
		caughtBy: "./internal/hashlog", tests: "TestWhoAppendsMeanwhileSharesTheNextSync",
	},
	{
		guard: "after a failed sync the embedded store's files are not written",
		file:  "internal/hashlog/append.go",
		old:   "if err := l.Err(); err != nil {\n\t\treturn 0, err\n\t}\n\tif size", new: "if size",
		caughtBy: "./internal/hashlog", tests: "TestAfterAFailureNothingIsAppended",
	},
	{
		guard: "a torn record of the embedded store is not believed",
		file:  "internal/hashlog/record.go", old: "case !intact(data[:length]):",
		new:      "case false:",
		caughtBy: "./internal/hashlog", tests: "TestATornTailIsCutOff",
	},
	{
		guard: "what the embedded store had synced is never cut off",
		file:  "internal/hashlog/recover.go", old: "int64(good) < durableBytes {",
		new:      "int64(good) < 0 {",
		caughtBy: "./internal/hashlog", tests: "TestADamagedRecordThatWasSyncedIsNotATornTail",
	},
	{
		guard: "a claim whose answer is lost is not taken for applied",
		file:  "dedup/redis/claim.go", old: "case err == goredis.Nil: //",
		new:      "case err != nil: //",
		caughtBy: "./dedup/linearizability", tests: "TestClaimsAreLinearizable/redis",
		server: servers.Redis,
	},
	{
		guard: "a new segment of the embedded store is in its directory before the manifest " +
			"names it",
		file: "internal/hashlog/segment.go", old: "err = l.o.Disk.SyncDirectory(l.dir)",
		new:      "err = nil",
		caughtBy: "./internal/hashlog", tests: "TestPowerCuts",
	},
	{
		guard: "a new segment of the embedded store is durable before the manifest names it",
		file:  "internal/hashlog/segment.go", old: "err = s.sync()", new: "err = nil",
		caughtBy: "./internal/hashlog", tests: "TestTheFirstBytesOfASegmentAreNotATornTail",
	},
	{
		guard: "the embedded store deletes nothing that has ended only by a clock that jumped",
		file:  "dedup/embedded/sweep.go", old: "s.clock.Passed(state.patience())", new: "s.now()",
		caughtBy: "./dedup/embedded", tests: "TestAWrongClockForgetsNothingForGood",
	},
	{
		guard: "a clock that is behind does not end the embedded store's claims early",
		file:  "dedup/embedded/claim.go", old: "s.clock.Now().Add", new: "s.now().Add",
		caughtBy: "./dedup/embedded", tests: "TestAWrongClockForgetsNothingForGood",
	},
	{
		guard: "a PostgreSQL whose clock is ahead deletes nothing by that alone",
		file:  "dedup/postgres/statements.go", old: "LEAST(statement_timestamp(), $3)",
		new:      "GREATEST(statement_timestamp(), $3)",
		caughtBy: "./dedup/postgres", tests: "TestTheSweepBelievesNoClockAlone",
		server: testkit.Postgres,
	},
	{
		guard: "the hashes of the embedded store cannot be foreseen",
		file:  "internal/hashlog/recover.go", old: "_, _ = rand.Read(l.key[:])",
		new:      "_ = rand.Read",
		caughtBy: "./internal/hashlog", tests: "TestEveryLogHasAKeyOfItsOwn",
	},
	{
		guard: "the embedded store has few files open, however many there are",
		file:  "internal/hashlog/files.go", old: "r.files.closeOldLocked(r)",
		new:      "_ = r.files.closeOldLocked",
		caughtBy: "./internal/hashlog", tests: "TestFewFilesAreOpen",
	},
	{
		guard: "a record of the embedded idempotency store hides the one that it replaces until " +
			"that has ended",
		file: "idempotency/embedded/store.go", old: "max(ends, endOf(expires))",
		new:      "endOf(expires)",
		caughtBy: "./idempotency/embedded",
		tests:    "TestTheSweepDeletesWhatHasExpiredAndNothingElse",
	},
	{
		guard: "of equal IDs in one transaction of the caller only the first is first",
		file:  "dedup/postgres/tx.go",
		old:   "answer.Outcome = dedup.Exists // for the next claim of this ID", new: "_ = answer",
		caughtBy: "./dedup/postgres", tests: "TestOfEqualIDsInOneTransactionTheFirstIsFirst",
		server: testkit.Postgres,
	},
	{
		guard: "a claim waits for PostgreSQL's disk whatever a pooler's connection is set to",
		file:  "dedup/postgres/statements.go",
		old:   "THEN set_config('synchronous_commit', 'on', true) END", new: "THEN 'off' END",
		caughtBy: "./dedup/postgres",
		tests:    "TestWhatIsAnsweredIsDurableWhateverAnotherClientOfThePoolerHasSet",
		server:   testkit.Postgres,
	},
	{
		guard: "what PostgreSQL's table was at the start is asked again",
		file:  "dedup/postgres/claim.go", old: "err := s.watch.Err(); err != nil",
		new:      "err := s.watch.Err(); false",
		caughtBy: "./dedup/postgres", tests: "TestClaimsWaitWhileATableCannotKeepThem",
		server: testkit.Postgres,
	},
	{
		guard: "a Redis that begins to evict gets no claims",
		file:  "dedup/redis/claim.go", old: "err := s.watch.Err(); err != nil",
		new:      "err := s.watch.Err(); false",
		caughtBy: "./dedup/redis", tests: "TestAServerThatBeginsToEvictGetsNoClaims",
		server: servers.Redis,
	},
	{
		guard: "data centres that would decide apart get no claims",
		file:  "dedup/cassandra/claim.go", old: "err := s.watch.Err(); err != nil",
		new:      "err := s.watch.Err(); false",
		caughtBy: "./dedup/cassandra", tests: "TestClaimsWaitWhileDataCentresWouldDecideApart",
	},
	{
		guard: "a directory that was removed gets no claims",
		file:  "dedup/embedded/store.go", old: "s.watch != nil && s.watch.Err() != nil",
		new:      "false",
		caughtBy: "./dedup/embedded", tests: "TestClaimsWaitWhileTheDirectoryIsGone",
	},
	{
		guard: "a reload moves no override to another entry",
		file:  "cmd/kdedup/internal/process/reload.go", old: "case now == before:",
		new:      "case true:",
		caughtBy: "./cmd/kdedup/internal/process",
		tests:    "TestAReloadIsRefusedThatMovesAnOverrideToAnotherEntry",
	},
	{
		guard: "names in CQL are quoted",
		file:  "dedup/cassandra/options.go",
		old:   "return `\"` + strings.ReplaceAll(name, `\"`, `\"\"`) + `\"`", new: "return name",
		caughtBy: "./dedup/cassandra", tests: "TestEveryNameThatIsAdmittedWorks",
		server: testkit.Cassandra,
	},
	{
		guard: "a store that takes no claims is not up because it answers look-ups",
		file:  "internal/claimmetrics/store.go", old: "if o.refusal.now() != nil {",
		new:      "if false {",
		caughtBy: "./internal/claimmetrics",
		tests:    "TestAStoreThatDecidesNoClaimsIsNotUpBecauseItAnswersLookUps",
	},
	{
		guard: "read-only sessions leave PostgreSQL's pool",
		file:  "dedup/postgres/store.go", old: "s.pool.Reset()", new: "_ = s",
		caughtBy: "./dedup/postgres", tests: "TestReadOnlySessionsLeaveThePool",
		server: testkit.Postgres,
	},
	{
		guard: "a record whose transaction was committed without an answer is a replay",
		file:  "dedup/postgres/tx.go", old: "case a.Owner.Same(c.Owner):", new: "case false:",
		caughtBy: "./dedup/postgres", tests: "TestACommitWithoutAnAnswerIsRepeatedWithoutHarm",
		server: testkit.Postgres,
	},
	{
		guard:    "what an entry writes is no input of a pattern",
		file:     "config/pattern.go",
		old:      "x.madeHere(topic):",
		new:      "false:",
		caughtBy: "./config",
		tests:    "TestWhatAnEntryWritesIsNoInput",
	},
	{
		guard:    "a redrive knows what was redriven before",
		file:     "internal/redrive/run.go",
		old:      "case r.marks.has(l.mark):",
		new:      "case false:",
		caughtBy: "./internal/redrive",
		tests:    "TestALetterIsRedrivenOnceWhateverIsSelected",
	},
	{
		guard:    "letters of one record are redriven once",
		file:     "internal/redrive/run.go",
		old:      "if seen[l.mark] {",
		new:      "if false {",
		caughtBy: "./internal/redrive",
		tests:    "TestLettersOfOneRecordAreRedrivenOnce",
	},
	{
		guard:    "a record that was read again since is a copy of itself",
		file:     "internal/redrive/judge.go",
		old:      "return l.undeliverable() && j",
		new:      "return j",
		caughtBy: "./internal/redrive",
		tests:    "TestARecordThatWasReadAgainIsACopyOfItself",
	},
	{
		guard:    "the claim of a killed redrive does not block the way into the input",
		file:     "internal/redrive/judge.go",
		old:      "l.release = r.Into == Input\n\tcase dedup.VerdictMissing:",
		new:      "case dedup.VerdictMissing:",
		caughtBy: "./internal/redrive",
		tests:    "TestTheClaimOfAKilledAttemptDoesNotBlockTheWayIntoTheInput",
	},
	{
		guard:    "a redrive that was replaced sends and releases nothing",
		file:     "internal/redrive/session.go",
		old:      "kgo.TransactionalID(o.TransactionalID)",
		new:      "kgo.TransactionalID(fmt.Sprint(o.TransactionalID, time.Now().UnixNano()))",
		caughtBy: "./internal/redrive",
		tests:    "TestARedriveThatWasReplacedSendsAndReleasesNothing/fake",
	},
	{
		guard:    "a dropped copy is no new message because its claim has ended",
		file:     "internal/redrive/letter.go",
		old:      "!l.ClaimedAt.After(now.Add(-r.Scope.TTL)):",
		new:      "false:",
		caughtBy: "./internal/redrive",
		tests:    "TestADroppedCopyIsNoNewMessageBecauseItsClaimHasEnded",
	},
}

// It builds the tests once per case, so it is a proof; see TestEveryGuardIsFound for every change.
func TestEverySabotageIsCaught(t *testing.T) {
	for _, s := range testkit.Share(t, sabotages, nil) {
		t.Run(s.guard, func(t *testing.T) {
			if s.server != nil {
				s.server(t)
			}
			out, err := s.test(t)
			switch {
			case err == nil:
				t.Errorf("%s passes without it:\n%s", s.tests, out)
			// A test that waits for ever without the guard has failed, too.
			case !strings.Contains(out, "--- FAIL: ") &&
				!strings.Contains(out, "panic: test timed out"):
				t.Errorf("%s did not run: %v\n%s", s.tests, err, out)
			}
		})
	}
}

// A change of the product that moves a guard moves it here, too.
func TestEveryGuardIsFound(t *testing.T) {
	for _, s := range sabotages {
		t.Run(s.guard, func(t *testing.T) { s.broken(t, filepath.Join(root, s.file)) })
	}
}

func TestTheDocumentsNameEverySabotage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/testing.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sabotages {
		row := "| " + s.guard + " | `" + strings.TrimPrefix(s.caughtBy, "./") + "` " + s.tests +
			" |"
		if !strings.Contains(string(text), row) {
			t.Errorf("docs/testing.md lacks the row\n%s", row)
		}
	}
}

// test runs the tests on the broken product. The sources stay as they are: the Go tool is given the
// broken file in place of the true one.
func (s sabotage) test(t *testing.T) (out string, err error) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, s.file))
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: s.broken(t, path)}})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-overlay", list, "-count=3", "-failfast",
		"-vet=off", "-timeout=1m", "-run", "^"+s.tests, s.caughtBy)
	cmd.Dir = root
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// broken writes the file without the guard and returns where.
func (s sabotage) broken(t *testing.T, path string) string {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), s.old); n != 1 {
		t.Fatalf("%s holds %q %d times, want once", s.file, s.old, n)
	}
	broken := filepath.Join(t.TempDir(), filepath.Base(path))
	if err := os.WriteFile(
		broken, []byte(strings.Replace(string(source), s.old, s.new, 1)), 0o600,
	); err != nil {
		t.Fatal(err)
	}
	return broken
}
