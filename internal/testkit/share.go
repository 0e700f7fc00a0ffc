package testkit

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/kdedup/kdedup/internal/testkit/skip"
)

// ShareEnv says which share of a proof's cases a run takes: "2/6" is the second of six. cmd/proof
// sets it.
const ShareEnv = "KDEDUP_SHARE"

// OnClaimLogEnv has the tests of e2e that take any store take the claim log in Kafka.
const OnClaimLogEnv = "KDEDUP_ON_CLAIM_LOG"

// Share returns the cases of a long proof that this run takes: every n-th of them by ShareEnv, and
// without it the sample that guards every change. An empty sample skips the test.
func Share[C any](t testing.TB, cases, sample []C) []C {
	t.Helper()
	text := os.Getenv(ShareEnv)
	if text == "" {
		if len(sample) == 0 {
			skip.Proof(t)
		}
		return sample
	}
	share, of, err := parseShare(text)
	if err != nil {
		t.Fatal(err)
	}
	var taken []C
	for i := share - 1; i < len(cases); i += of {
		taken = append(taken, cases[i])
	}
	return taken
}

func parseShare(text string) (share, of int, err error) {
	if _, err := fmt.Sscanf(text, "%d/%d", &share, &of); err != nil || share < 1 || share > of ||
		text != Shared(share, of) {
		return 0, 0, fmt.Errorf("%s: %q is no share such as 2/6", ShareEnv, text)
	}
	return share, of, nil
}

// Shared is the value of ShareEnv for a share.
func Shared(share, of int) string { return strconv.Itoa(share) + "/" + strconv.Itoa(of) }

// LongTests are the tests of e2e that `make proof` runs in turns: what each of them breaks, chaos
// and the crash points break as well, in other ways.
var LongTests = []string{
	"TestABackfillBeforeAndBesideThePipeline",
	"TestABrokerRestartOnlyDelays",
	"TestACrashAroundTheBlocksOfAClaimLog",
	"TestACrashAroundTheClaimsOnRedis",
	"TestACrashBetweenTheStatementsOnPostgres",
	"TestAFailoverOfRedisRepeatsAndLosesNothing",
	"TestAKeeperOfACassandraLogThatIsKilledLosesNothing",
	"TestAKeeperThatIsKilledLosesNothing",
	"TestAKeeperThatIsStoppedForLongDoublesNothing",
	"TestAKeeperWithoutLanesFollowsTheFile",
	"TestAKeeperWithoutLanesThatIsKilledHoldsNobodyUp",
	"TestALogThatAnUncleanElectionCutIsReadFromThereOn",
	"TestAMoveFromRowsToLogsLosesAndDoublesNothing",
	"TestAMoveFromStoreToStoreLosesAndDoublesNothing",
	"TestAQuotaMakesBatchesSmaller",
	"TestAProcessReadsFromTheReplicaInItsRack",
	"TestACrashRepeatsOneBatchOnAnotherCluster",
	"TestAnOutageUnderManyPipelinesIsAFewLines",
	"TestAnUpgradeToKeepersNeedsNoStop",
	"TestAnOutageOfTheOtherClusterOnlyDelays",
	"TestExactlyOnceOntoAnotherCluster",
	"TestAnOutageOfEitherClusterOnlyDelaysExactlyOnce",
	"TestAMemberThatStoodStillCommitsNothingOnTheOtherCluster",
	"TestAnotherClusterUnderTheAddressOfTheOutputIsRefused",
	"TestAWidenedInputIsReadForTheOtherCluster",
	"TestKillsRebalancesAndRestartsBetweenTwoClusters",
	"TestDescribeOnAGroupTellsWhetherItHasMembers",
	"TestRightsOnTwoClusters",
	"TestAMigrationBetweenClustersLosesAndDoublesNothing",
	"TestLanesWithoutAnIndexAskAKeeperWithoutLanes",
	"TestARestartOfAStaticMemberMovesNothing",
	"TestAStartEndsHoweverFewConnectionsABrokerAdmits",
	"TestATopicOfManyKindsOfRecordsIsCleanedOnce",
	"TestCopiesKeepTheirIDsWhileProcessesAreKilled",
	"TestNothingOfARecreatedInputIsSkipped",
	"TestOffsetsThatMirrorMakerCopiesAreRefusedThere",
	"TestOnACassandraLogAKilledProcessLosesNothing",
	"TestOnACassandraLogTwoProcessesCleanABacklog",
	"TestOnAClaimLogTwoProcessesCleanABacklog",
	"TestOnPostgresAKilledProcessLosesNothing",
	"TestManyTopicsHaveFewConnections",
	"TestOnPostgresTwoProcessesCleanABacklog",
	"TestOutboxWhoseProcessesAreKilledShipsEveryOrderOnce",
	"TestRebalancesInMidBatchLoseAndDoubleNothing",
	"TestReloadsWhileRecordsFlowLoseAndDoubleNothing",
	"TestTortureReachesTheCleanTopicOnAnotherCluster",
	"TestTortureTellsADeduplicatorFromACopy",
}

// InTurn skips a test of LongTests unless its turn of `make proof` runs.
func InTurn(t testing.TB) {
	t.Helper()
	if !slices.Contains(LongTests, t.Name()) {
		t.Fatal("it is not in testkit.LongTests, so no turn runs it")
	}
	if !slices.Contains(Share(t, LongTests, nil), t.Name()) {
		t.Skip("it has another turn")
	}
}
