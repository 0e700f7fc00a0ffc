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
		file:  "dedup/verdict.go", old: "case a.Owner == m.Owner:", new: "case false:",
		caughtBy: "./pipeline", tests: "TestBatchesThatFailBeforeTheForwardAreRepeated",
	},
	{
		guard: "equal records of a batch compare the owner each for itself",
		file:  "dedup/fold.go", old: "answers[f.claimOf[i]])",
		new:      "answers[f.claimOf[i]])\n\t\tif f.claims[f.claimOf[i]].Owner != m.Owner {\n\t\t\tjudgements[i].Verdict = VerdictDuplicate\n\t\t}",
		caughtBy: "./dedup", tests: "TestAFollowerThatOwnsTheIDRecognisesItself",
	},
	{
		guard: "undecided claims are claimed again",
		file:  "dedup/retry.go", old: "for round := 1; len(open) > 0; round++ {", new: "for round := 1; len(open) > len(claims); round++ {",
		caughtBy: "./pipeline", tests: "TestAmbiguousClaimsLoseAndDoubleNothing",
	},
	{
		guard: "the fence tells a rewind from a redelivery",
		file:  "consumer/fence.go", old: "return r.Offset < f.Next() &&", new: "return false && r.Offset < f.Next() &&",
		caughtBy: "./pipeline", tests: "TestARewoundGroupForwardsNothingTwice",
	},
	{
		guard: "the fence is the last one that was committed",
		file:  "consumer/fence_reader.go", old: "return t.back(t.low), nil", new: "return false, nil",
		caughtBy: "./consumer", tests: "TestTheLastCommittedFenceIsFound/fake",
	},
	{
		guard: "a claim that is younger than the fence is no replay",
		file:  "dedup/verdict.go", old: "&& !a.ClaimedAt.After(m.Settled):", new: ":",
		caughtBy: "./pipeline", tests: "TestACopyThatClaimsAnewBelowTheFenceIsForwarded",
	},
	{
		guard: "the fence waits for transactions that are open",
		file:  "consumer/fence_reader.go", old: "admin.ListEndOffsets(ctx, r.topic)", new: "admin.ListCommittedOffsets(ctx, r.topic)",
		caughtBy: "./consumer", tests: "TestAnOpenTransactionIsWaitedFor/fake",
	},
	{
		guard: "offsets above the fence are not believed",
		file:  "consumer/skip.go", old: "at.Offset > fence.Next()", new: "at.Offset < 0",
		caughtBy: "./pipeline", tests: "TestOffsetsThatWereMovedForwardSkipNothing/accept=false/exactly_once",
	},
	{
		guard: "a lane that joins ends what its predecessor left open",
		file:  "consumer/takeover.go", old: "t.id, t.epoch = answer.ProducerID, answer.ProducerEpoch\n\treturn", new: "return",
		caughtBy: "./consumer", tests: "TestATakeoverEndsWhatThePredecessorLeftOpen/fake",
	},
	{
		guard: "a failed produce aborts its batch",
		file:  "forwarder/send.go", old: "if err := first.get(); err != nil {", new: "if err := first.get(); err != nil && false {",
		caughtBy: "./pipeline", tests: "TestAFailedProduceAbortsItsBatch",
	},
	{
		guard: "an aborted transaction is not committed",
		file:  "consumer/opening.go", old: "t.client.EndTransaction(ctx, kgo.TryAbort)", new: "t.client.EndTransaction(ctx, kgo.TryCommit)",
		caughtBy: "./pipeline", tests: "TestAFailedProduceAbortsItsBatch/exactly_once",
	},
	{
		guard: "a transaction that has nothing but offsets is aborted, too",
		file:  "consumer/opening.go", old: "if len(b.Spans) > 0 {", new: "if false {",
		caughtBy: "./consumer", tests: "TestABatchIsGivenBackBeforeItsForwards/fake",
	},
	{
		guard: "a batch whose partitions were taken away is not committed",
		file:  "consumer/transactional.go", old: "if t.wasTaken() {", new: "if t.wasTaken() && false {",
		caughtBy: "./consumer", tests: "TestABatchThatWasTakenAwayIsNotCommitted/fake",
	},
	{
		guard: "with at_least_once a batch that was given back is read again",
		file:  "consumer/at_least_once.go", old: "a.client.SetOffsets(a.client.CommittedOffsets())", new: "",
		caughtBy: "./pipeline", tests: "TestABatchThatIsGivenBackIsReadAgain/at_least_once",
	},
	{
		guard: "with at_least_once partitions are kept until their offsets are committed",
		file:  "consumer/at_least_once.go", old: "_ = a.offsets.Load().wait()", new: "_ = a.offsets.Load()",
		caughtBy: "./consumer", tests: "TestARevocationWaitsForTheOffsets",
	},
	{
		guard: "with at_least_once nothing is forwarded by a member whose offsets were refused",
		file:  "consumer/at_least_once.go", old: "error { return a.committed() }", new: "error { return nil }",
		caughtBy: "./consumer", tests: "TestRefusedOffsetsEndTheSession",
	},
	{
		guard: "a member does not go on behind records that others have handled",
		file:  "consumer/refused.go", old: "at.At > mine", new: "at.At > mine && false",
		caughtBy: "./consumer", tests: "TestAMemberThatTheGroupHasGivenUpEndsItsSession",
	},
	{
		guard: "records of aborted transactions are not read",
		file:  "consumer/options.go", old: "kgo.ReadCommitted()", new: "kgo.ReadUncommitted()",
		caughtBy: "./pipeline", tests: "TestAbortedInputClaimsNothing",
	},
	{
		guard: "a backfill claims only what is committed",
		file:  "internal/logreader/read.go", old: "kgo.FetchIsolationLevel(kgo.ReadCommitted())", new: "kgo.FetchIsolationLevel(kgo.ReadUncommitted())",
		caughtBy: "./backfill", tests: "TestWhatIsNotCommittedClaimsNothing",
	},
	{
		guard: "a group that starts at the end commits where that is",
		file:  "consumer/start.go", old: "if len(pins) == 0 {", new: "if true {",
		caughtBy: "./consumer", tests: "TestPinStartCommitsTheEndOnce/fake",
	},
	{
		guard: "two calls about one ID run one after the other",
		file:  "dedup/embedded/scope.go", old: "deciding: make(chan struct{}, 1)", new: "deciding: make(chan struct{}, 2)",
		caughtBy: "./dedup/embedded", tests: "TestAClaimWaitsForACallAboutItsID",
	},
	{
		guard: "an answer of the embedded store is durable",
		file:  "dedup/embedded/claim.go", old: "return state.sync(ctx, mark)", new: "_ = mark\n\treturn nil",
		caughtBy: "./dedup/embedded", tests: "TestOnlyWhatIsDurableIsTold",
	},
	{
		guard: "what is read in the embedded store's files is waited for, too",
		file:  "internal/hashlog/append.go", old: "mark := l.syncs.note()", new: "mark := l.syncs.latest()",
		caughtBy: "./internal/hashlog", tests: "TestWhoAppendsMeanwhileSharesTheNextSync",
	},
	{
		guard: "after a failed sync the embedded store's files are not written",
		file:  "internal/hashlog/append.go", old: "if err := l.Err(); err != nil {\n\t\treturn 0, err\n\t}\n\tif size", new: "if size",
		caughtBy: "./internal/hashlog", tests: "TestAfterAFailureNothingIsAppended",
	},
	{
		guard: "a torn record of the embedded store is not believed",
		file:  "internal/hashlog/record.go", old: "case !intact(data[:length]):", new: "case false:",
		caughtBy: "./internal/hashlog", tests: "TestATornTailIsCutOff",
	},
	{
		guard: "what the embedded store had synced is never cut off",
		file:  "internal/hashlog/recover.go", old: "int64(good) < durableBytes {", new: "int64(good) < 0 {",
		caughtBy: "./internal/hashlog", tests: "TestADamagedRecordThatWasSyncedIsNotATornTail",
	},
	{
		guard: "of equal IDs in one transaction of the caller only the first is first",
		file:  "dedup/postgres/tx.go", old: "answer.Outcome = dedup.Exists // for the next claim of this ID", new: "_ = answer",
		caughtBy: "./dedup/postgres", tests: "TestOfEqualIDsInOneTransactionTheFirstIsFirst", server: testkit.Postgres,
	},
	{
		guard: "a record whose transaction was committed without an answer is a replay",
		file:  "dedup/postgres/tx.go", old: "case a.Owner == c.Owner:", new: "case false:",
		caughtBy: "./dedup/postgres", tests: "TestACommitWithoutAnAnswerIsRepeatedWithoutHarm", server: testkit.Postgres,
	},
}

func TestEverySabotageIsCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the tests once per case")
	}
	for _, s := range sabotages {
		t.Run(s.guard, func(t *testing.T) {
			if s.server != nil {
				s.server(t)
			}
			out, err := s.test(t)
			switch {
			case err == nil:
				t.Errorf("%s passes without it:\n%s", s.tests, out)
			case !strings.Contains(out, "--- FAIL: "):
				t.Errorf("%s did not run: %v\n%s", s.tests, err, out)
			}
		})
	}
}

func TestTheDocumentsNameEverySabotage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/testing.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sabotages {
		row := "| " + s.guard + " | `" + strings.TrimPrefix(s.caughtBy, "./") + "` " + s.tests + " |"
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
	cmd := exec.CommandContext(t.Context(), "go", "test", "-overlay", list, "-count=1", "-vet=off", "-timeout=2m", "-run", "^"+s.tests, s.caughtBy)
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
	if err := os.WriteFile(broken, []byte(strings.Replace(string(source), s.old, s.new, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return broken
}
