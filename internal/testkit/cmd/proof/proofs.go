package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kdedup/kdedup/internal/testkit"
)

// proof is a test with more cases than every change can wait for.
type proof struct {
	name  string
	pkg   string
	tests string        // as -run
	turns int           // into which its cases are divided
	takes time.Duration // one turn, on two quiet cores, with what it compiles
	env   func(seed uint64, turn int) []string
	plain bool // without the race detector

	releases []release // one a turn, in place of pkg, tests and env
}

var proofs = []proof{
	{name: "model", pkg: "./pipeline/simulation", tests: "^TestModel$", turns: 1,
		takes: 90 * time.Second, env: fullModel, plain: true},
	{name: "e2e", pkg: "./e2e", tests: "^(" + strings.Join(testkit.LongTests, "|") + ")$", turns: 5,
		takes: 3 * time.Minute, env: share(5)},
	{name: "e2e-log", pkg: "./e2e", tests: "^(" + strings.Join(ofAnyStore, "|") + ")$", turns: 2,
		takes: 4 * time.Minute, env: onClaimLog},
	{name: "crash", pkg: "./e2e", tests: "^TestACrashAtEveryPoint(BetweenTwoClusters)?$", turns: 4,
		takes: 2 * time.Minute, env: share(4)},
	{name: "crash-real", pkg: "./e2e", tests: "^TestACrashAtEveryPointOnRealServers$", turns: 3,
		takes: 2 * time.Minute, env: share(3)},
	{name: "redrive", pkg: "./e2e", tests: "^TestARedriveKilledThreeTimesLeavesNothingTwice$",
		turns: 2, takes: 2 * time.Minute, env: share(2)},
	{name: "sabotage", pkg: "./lab/sabotage", tests: "^TestEverySabotageIsCaught$", turns: 5,
		takes: 90 * time.Second, env: share(5)},
	{name: "chaos", pkg: "./e2e/chaos", tests: "^TestChaos$", turns: 6, takes: 3 * time.Minute,
		env: storm},
	{name: "paxos", pkg: "./dedup/claimlog/cassandralog", tests: "^Test", turns: 1,
		takes: 2 * time.Minute, env: secondShare},
	{name: "serializers", pkg: "./e2e", tests: "^TestRecordsOfSerializersAreCleanedOnce$",
		turns: 11, takes: 3 * time.Minute, env: share(11)},
	{name: "tenants", pkg: "./e2e", tests: "^TestTheTopicsOfAPatternAreCleanedThroughAKill$",
		turns: 1, takes: 3 * time.Minute, env: manyTenants, plain: true},
	{name: "registry", pkg: "./dedup/messageid/registry", tests: "^TestARealRegistryIsUnderstood$",
		turns: 1, takes: 90 * time.Second, env: share(1)},
	{name: "bench", pkg: "./bench", tests: "^TestEveryContestantDrainsItsTopic$", turns: 1,
		takes: 2 * time.Minute, env: share(1)},
	{name: "releases", turns: len(releases), takes: 3 * time.Minute, releases: releases},
}

func share(of int) func(uint64, int) []string {
	return func(_ uint64, turn int) []string {
		return []string{testkit.ShareEnv + "=" + testkit.Shared(turn, of)}
	}
}

// secondShare is what make test leaves out of two.
func secondShare(uint64, int) []string {
	return []string{testkit.ShareEnv + "=" + testkit.Shared(2, 2)}
}

// ofAnyStore are the tests of e2e that take the store that they are told.
var ofAnyStore = []string{
	"TestABackfillBeforeAndBesideThePipeline", "TestAKilledProcessLosesNothing",
	"TestAQuotaMakesBatchesSmaller", "TestARestartOfAStaticMemberMovesNothing",
	"TestATopicOfManyKindsOfRecordsIsCleanedOnce", "TestAssignmentByTheBroker",
	"TestNothingOfARecreatedInputIsSkipped", "TestRebalancesInMidBatchLoseAndDoubleNothing",
	"TestTheReportSaysWhatRunDoes", "TestTwoProcessesCleanABacklog",
}

func onClaimLog(_ uint64, turn int) []string {
	return []string{testkit.ShareEnv + "=" + testkit.Shared(turn, 2), testkit.OnClaimLogEnv + "=1"}
}

func manyTenants(uint64, int) []string { return []string{"KDEDUP_TENANTS=290"} }

// fullModel takes back the shorter run that the environment of make test asks for.
func fullModel(uint64, int) []string { return []string{"KDEDUP_MODEL_STEPS=20000000"} }

// storm has a turn for each store and delivery.
func storm(seed uint64, turn int) []string {
	store := []string{"cassandra", "cassandra-log", "kafka"}[(turn-1)/2]
	delivery := []string{"exactly_once", "at_least_once"}[(turn-1)%2]
	return []string{
		"CHAOS_SECONDS=60", "CHAOS_SEED=" + strconv.FormatUint(seed, 10),
		"CHAOS_STORE=" + store, "CHAOS_DELIVERY=" + delivery,
	}
}

func names(all []proof) (names []string) {
	for _, p := range all {
		names = append(names, p.name)
	}
	return names
}

// choose returns the proofs that a list with commas names; of an empty list all.
func choose(all []proof, list string) ([]proof, error) {
	if list == "" {
		return all, nil
	}
	var chosen []proof
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(all, func(p proof) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-only: unknown proof %q, known are %s", name,
				strings.Join(names(all), ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// turn is a part of a proof, counted from 1.
type turn struct {
	proof
	n int
}

func (t turn) String() string {
	text := t.name + " " + testkit.Shared(t.n, t.turns)
	if t.releases != nil {
		text += " (" + t.releases[t.n-1].String() + ")"
	}
	return text
}

func (t turn) command(seed uint64) *exec.Cmd {
	cmd := t.test(seed)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd
}

func (t turn) test(seed uint64) *exec.Cmd {
	if t.releases != nil {
		return t.releases[t.n-1].command()
	}
	args := []string{"test", "-pgo=off", "-count=1", "-timeout=30m", "-run", t.tests}
	if !t.plain {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, t.pkg)...)
	cmd.Env = append(os.Environ(), t.env(seed, t.n)...)
	return cmd
}
