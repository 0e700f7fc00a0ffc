# `make help` lists the targets. Servers for tests: see internal/testkit/cmd/withservers.

SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c

GO          ?= go
TOOL        := $(GO) tool -modfile=tools/go.mod
WITHSERVERS := bin/withservers
GOTEST      := bin/gotest
PROOF       := bin/proof
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null)

PKG         ?= ./...
TESTFLAGS   ?=
COVERAGE    := bin/coverage.out
FUZZTIME    ?= 20s
MINUTES     ?= 5
SEED        ?=
ROUND       ?=
FOR         ?= 0
ONLY        ?=
DELIVERY    ?= exactly_once,at_least_once
STORE       ?= cassandra
BENCH       ?=
MICRO       ?= .
MICROFLAGS  ?= -benchmem -count=6

FRESH       := $(if $(filter true,$(CI)),-count=1)

export KDEDUP_TEST_RUN := $(shell date +%s%N)

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/kdedup (VERSION=…)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X github.com/kdedup/kdedup/process/build.version=$(VERSION)' -o bin/kdedup ./cmd/kdedup

# Not `go run`: that dies of a SIGTERM and leaves the program to itself.
.PHONY: $(WITHSERVERS) $(GOTEST) $(PROOF)
$(WITHSERVERS) $(GOTEST) $(PROOF):
	@$(GO) build -pgo=off -o $@ ./internal/testkit/cmd/$(@F)

# The simulation lets one goroutine act at a time, in an order that the race detector does not see.
SIMULATION = KDEDUP_MODEL_STEPS=$${KDEDUP_MODEL_STEPS:-3000000} $(GO) test -pgo=off -count=1 ./pipeline/simulation

# -pgo=off here and in lint: Go would compile everything that cmd/kdedup needs a second time, which takes minutes on a
# fresh machine. `make proof` and the benchmarks build the optimised binary.
# Lint has vetted. The tests of e2e take longest, so they begin first; they mostly wait.
# Go's cache has the results of packages that did not change. KDEDUP_TEST_RUN has those run each time of which it cannot
# know that: see testkit.EachRun. CI takes no earlier result.
.PHONY: test
test: lint $(if $(filter ./...,$(PKG)),chart goreleaser) $(WITHSERVERS) $(GOTEST) ## Lint, then test all against real servers, with the race detector (PKG=./…, TESTFLAGS=…)
	GOFLAGS="$(GOFLAGS) -pgo=off" KDEDUP_MODEL_STEPS=$${KDEDUP_MODEL_STEPS:-1000000} $(WITHSERVERS) -- \
		$(GOTEST) -slowest 10 -again -- -vet=off -race $(FRESH) -p 2 -timeout 40m $(TESTFLAGS) \
		$(if $(filter ./...,$(PKG)),./e2e) $(PKG)
	$(if $(filter ./...,$(PKG)),$(SIMULATION))

.PHONY: proof
proof: $(WITHSERVERS) $(PROOF) ## Prove what takes long, in turns by SEED (the commit's) (FOR=20m, ONLY=chaos,sabotage, AGAIN=1)
	$(WITHSERVERS) -- $(PROOF) -for $(FOR) -only "$(ONLY)" $(if $(SEED),-seed $(SEED)) $(if $(AGAIN),-again)

.PHONY: coverage
coverage: $(WITHSERVERS) $(GOTEST) ## Test all as above, and print how much of the code that runs
	$(WITHSERVERS) -- $(GOTEST) -- -pgo=off -coverprofile=$(COVERAGE) -count=1 -p 2 -timeout 30m $(TESTFLAGS) $(PKG)
	@$(GO) tool cover -func=$(COVERAGE) | awk '/^total:/ { print "coverage of all packages:", $$NF }'

.PHONY: packages
packages: ## Install the programs that make test needs (Debian and its kin, as root)
	@tools/packages

.PHONY: test-short
test-short: $(GOTEST) ## Test what needs no real servers, in six minutes (PKG=./…, TESTFLAGS=…)
	$(GOTEST) -slowest 5 -- -pgo=off -short -timeout 10m $(TESTFLAGS) $(PKG)

# Nothing is asked of servers, and results that Go's cache has are taken.
.PHONY: check
check: ## Test a change in PKG in seconds, and say what that did not test (PKG=./dedup/claimlog)
	@test "$(PKG)" != ./... || { echo "name the package of the change: make check PKG=./dedup/claimlog" >&2; exit 1; }
	@unformatted=$$(gofmt -l $(patsubst %/...,%,$(PKG))); test -z "$$unformatted" || { echo "not formatted, run gofmt -w on:"; echo "$$unformatted"; exit 1; }
	$(GO) vet -pgo=off $(PKG)
	$(GO) test -pgo=off -vet=off -short -timeout 3m $(TESTFLAGS) $(PKG) ./internal/arch
	@echo "Not tested: real servers and data races (make test PKG=$(PKG)), and the packages that import it:"
	@changed=$$($(GO) list $(PKG)); $(GO) list -f '{{.ImportPath}} {{join .Deps " "}}' ./... \
		| awk -v changed="$$changed" 'BEGIN { n = split(changed, names, "\n") } \
			{ own = 0; uses = 0; for (i = 1; i <= n; i++) { own += $$1 == names[i]; uses += index($$0 " ", " " names[i] " ") > 0 } \
			if (uses && !own) print "  " $$1 }'

.PHONY: lint
lint: ## Check the format, vet, run staticcheck (PKG=./…)
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "not formatted, run gofmt -w on:"; echo "$$unformatted"; exit 1; }
	$(GO) vet -pgo=off $(PKG)
	GOFLAGS="$(GOFLAGS) -pgo=off" $(TOOL) staticcheck $(PKG)

# A module of its own: Helm and the types of Kubernetes take minutes to compile the first time, and vet would take another.
# It imports package config, so -mod=mod lets its go.mod follow ours. Go's cache does not see that it reads ../docs.
.PHONY: chart
chart: ## Lint and test the Helm chart, without a cluster
	cd charts && nice $(GO) test -mod=mod -vet=off -count=1 $(TESTFLAGS) ./...

# A module of its own, for goreleaser's types.
.PHONY: goreleaser
goreleaser: ## Check .goreleaser.yaml
	cd deploy/goreleaser && nice $(GO) test -count=1 ./...

.PHONY: chart-docs
chart-docs: ## Write the chart's table of values, its schema and the base for Kustomize again
	cd charts && nice $(GO) test -mod=mod -vet=off -count=1 -run 'TestTheReadmeListsTheValues|TestTheSchemaIsUpToDate|TestTheKustomizeBase' . -update

.PHONY: board-pictures
board-pictures: ## Draw the boards by Grafana's components, of a PROMETHEUS that scrapes kdedup, END and SECONDS: docs/images (npm, Chromium)
	npm --prefix tools/boards install --ignore-scripts --legacy-peer-deps --no-audit --no-fund
	node tools/boards/draw.mjs $(PROMETHEUS) $(END) $(SECONDS)

.PHONY: readers
readers: $(WITHSERVERS) ## Read a topic with the clients that applications use, and write docs/readers.md (Go, Python, Node, Java, Rust)
	$(WITHSERVERS) -- sh -c 'cd tools/readers && nice $(GO) run . -kafka "$$KDEDUP_TEST_KAFKA" -write ../../docs/readers.md'

.PHONY: chaos
chaos: ## Break everything for MINUTES (5) by the schedule of SEED (1), DELIVERY=exactly_once,at_least_once STORE=cassandra|cassandra-log|kafka APART=1 KEEP=all|shared|only|none
	CI=true CHAOS_SECONDS=$$(( $(MINUTES) * 60 )) CHAOS_SEED=$(or $(SEED),1) CHAOS_DELIVERY=$(DELIVERY) CHAOS_STORE=$(STORE) \
		CHAOS_APART=$(APART) CHAOS_KEEP=$(KEEP) \
		$(GO) test -race -count=1 -timeout $$(( $(MINUTES) + 40 ))m -v -run TestChaos ./e2e/chaos

.PHONY: odd
odd: $(WITHSERVERS) ## Random topics and records against a real Kafka for MINUTES (5) by SEED (1), or one ROUND of them
	ODD_SECONDS=$$(( $(MINUTES) * 60 )) ODD_SEED=$(or $(SEED),1) ODD_ROUND=$(ROUND) \
		$(WITHSERVERS) -- $(GO) test -race -count=1 -timeout $$(( $(MINUTES) + 20 ))m -v -run TestOdd ./e2e

# Go ends a target now and then with "context deadline exceeded" when its time is over: no input failed.
.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (20s)
	@$(GO) test -list '^Fuzz' $(PKG) \
		| awk '/^Fuzz/ { names[n++] = $$1 } /^ok/ { for (i = 0; i < n; i++) print $$2, names[i]; n = 0 }' \
		| { failed=0; while read -r pkg name; do \
			echo "$$pkg $$name"; \
			out=$$($(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x "$$pkg" </dev/null 2>&1) || \
				case $$out in *'Failing input'*) failed=1 ;; *'context deadline exceeded'*) ;; *) failed=1 ;; esac; \
			echo "$$out"; \
		done; exit $$failed; }

.PHONY: vuln
vuln: ## Look for known vulnerabilities in what the code calls
	$(TOOL) govulncheck ./...

IMAGES := Dockerfile deploy/release.Dockerfile docker-compose.yml

.PHONY: pin
pin: ## Name the images that are built on and started by their digests, as the registries tell them now
	tools/pin $(IMAGES)

.PHONY: docs
docs: ## Write the generated documents again
	$(GO) generate ./...

.PHONY: bench-programs
bench-programs: build
	@$(GO) build -o bin/bench/ ./bench/...

.PHONY: bench
bench: bench-programs ## Compare with other programs on real servers, rewrite docs/performance.md (BENCH='[flags] [latency|…]')
	bin/bench/bench $(BENCH)

.PHONY: bench-peers bench-torture
bench-peers: ## Compare with Flink, Camel, Kafka Streams and Bento; needs Java 17 and Maven (BENCH='[flags]')
bench-torture: ## Kill their processes and kdedup's, and count what is lost and doubled (BENCH='[flags]')
bench-peers bench-torture: bench-%: bench-programs
	$(GO) build -C bench/peers/bento -o $(CURDIR)/bin/bench/peers/bento .
	mvn -q -B -f bench/peers/java package -DbuildDirectory=$(CURDIR)/bin/bench/peers
	mvn -q -B -f bench/peers/flink package -DbuildDirectory=$(CURDIR)/bin/bench/peers/flink
	bin/bench/bench $(BENCH) $*

.PHONY: pgo
pgo: bench-programs ## Measure again what the compiler optimises kdedup for: cmd/kdedup/default.pgo (5 minutes)
	bin/bench/bench -docs= -rounds 1 -records 2000000 -only kdedup-cassandra,kdedup-redis,kdedup-embedded -profile cmd/kdedup/default.pgo

# To compare two states of the code: go tool -modfile=tools/go.mod benchstat old.txt new.txt, of what this printed.
.PHONY: microbench
microbench: ## Run the Go benchmarks (MICRO=regexp, PKG=./…, MICROFLAGS=…)
	$(GO) test -run '^$$' -bench '$(MICRO)' $(MICROFLAGS) $(PKG)

.PHONY: demo
demo: build ## See it work, without Kafka and Cassandra
	bin/kdedup demo

.PHONY: clean
clean: ## Remove what make built
	rm -rf bin
