package sabotage_test

import (
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// ofStores is what guards the message IDs and stores.
var ofStores = []sabotage{
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
		guard: "an ID in a document that is cut off is no ID",
		file:  "dedup/messageid/json_scan.go", old: "if len(p) == 1 {", new: "if false {",
		caughtBy: "./dedup/messageid", tests: "TestJSONField",
	},
	{
		guard: "a tombstone that is told apart claims nothing",
		file:  "dedup/messageid/condition.go", old: "if IsTombstone(r.Value) {", new: "if false {",
		caughtBy: "./dedup/messageid", tests: "TestTombstonesAreToldApart",
	},
	{
		guard: "a value of which nothing is left to compare has no ID",
		file:  "dedup/messageid/content.go", old: "if part && c.leavesNothingOf(r.Value) {",
		new:      "if false {",
		caughtBy: "./dedup/messageid", tests: "TestAValueOfWhichNothingIsLeftHasNoID",
	},
	{
		guard:    "two headers that name different schemas are no frame",
		file:     "dedup/messageid/frame_header.go",
		old:      "if !ok || named && (ref != f.ref ||",
		new:      "if !ok || false && (ref != f.ref ||",
		caughtBy: "./dedup/messageid", tests: "TestTheConfigurationDecidesHowARecordNamesItsSchema",
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
		guard: "an outage that nobody saw go on is over",
		file:  "dedup/outage.go", old: "w.forget()\n\treturn context.Cause(ctx)",
		new:      "return context.Cause(ctx)",
		caughtBy: "./dedup", tests: "TestAFailureLongAfterAnOutageBeginsAnother",
	},
	{
		guard: "undecided claims are claimed again",
		file:  "dedup/retry.go", old: "for round := 1; len(open) > 0; round++ {",
		new:      "for round := 1; len(open) > len(claims); round++ {",
		caughtBy: "./pipeline", tests: "TestAmbiguousClaimsLoseAndDoubleNothing",
	},
	{
		guard: "a claim that is younger than the fence is no replay",
		file:  "dedup/verdict.go", old: "&& !a.ClaimedAt.After(m.Settled):", new: ":",
		caughtBy: "./pipeline", tests: "TestACopyThatClaimsAnewBelowTheFenceIsForwarded",
	},
	{
		guard:    "a topic ID that is not told fits to any",
		file:     "dedup/store.go",
		old:      "(c.TopicID == o.TopicID || c.TopicID == [16]byte{} || o.TopicID == [16]byte{})",
		new:      "c.TopicID == o.TopicID",
		caughtBy: "./pipeline", tests: "TestTopicIDsMayAppearAndDisappear",
	},
	{
		guard: "a claim that is made again is later than what the fence settles",
		file:  "dedup/fold.go", old: ", After: m.Settled}", new: "}",
		caughtBy: "./pipeline", tests: "TestAClaimMadeAgainIsLaterThanItsFenceWhateverTheClockSays",
	},
	{
		guard: "a panic is that of one record",
		file:  "dedup/tripped.go", old: "*err = &Tripped{",
		new:      "*err = fmt.Errorf(\"panic: %v\", p)\n\t\t_ = &Tripped{",
		caughtBy: "./pipeline", tests: "TestARecordThatPanicsHoldsItsPartitionByItself",
	},
	{
		guard: "no node of another data centre decides",
		file:  "dedup/cassandra/options.go", old: `if o.LocalDC != "" {`, new: "if false {",
		caughtBy: "./dedup/cassandra", tests: "TestNodesOfOtherDataCentresAreNotAsked",
	},
	{
		guard: "a renewal that is told was made",
		file:  "dedup/embedded/scope.go", old: "s.put(key, &owner, p.ends)", new: "_ = key",
		caughtBy: "./dedup/embedded",
		tests:    "TestConformance/sliding/a_renewal_changes_only_the_end",
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
		guard: "a claim whose answer is lost is not taken for applied",
		file:  "dedup/redis/claim.go", old: "case err == goredis.Nil: //",
		new:      "case err != nil: //",
		caughtBy: "./dedup/linearizability", tests: "TestClaimsAreLinearizable/redis",
		server: servers.Redis,
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
		guard: "names in CQL are quoted",
		file:  "dedup/cassandra/options.go",
		old:   "return `\"` + strings.ReplaceAll(name, `\"`, `\"\"`) + `\"`", new: "return name",
		caughtBy: "./dedup/cassandra", tests: "TestEveryNameThatIsAdmittedWorks",
		server: testkit.Cassandra,
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
}
