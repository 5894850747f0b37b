# Every check of the repository. The modules are those of go.work; each is
# checked by itself (GOWORK=off), with the versions that its users get.

SHELL := bash
.SHELLFLAGS := -o pipefail -c
.DEFAULT_GOAL := help
ifneq ($(MAKECMDGOALS),checks) # only the checks of make test go beside each other
.NOTPARALLEL:
endif

export GOWORK := off
export GOFLAGS += -buildvcs=false

MODULES := $(shell go work edit -json go.work | sed -n 's/.*"DiskPath": "\(.*\)".*/\1/p')
ifeq ($(MODULES),)
$(error go.work names no module, or go is not in PATH)
endif

# The modules whose tests run under the race detector. Those of bench are a check of their own (benchtests): they
# start nothing, and the libraries beside them take minutes to compile for it.
TESTED := $(filter-out ./bench,$(MODULES))

# Where else the packages are to compile, tests included. No test is run there.
PLATFORMS := windows/amd64 darwin/arm64 linux/386 js/wasm
# The SQLite of taskqueue, locks and kvqueue needs memory maps.
NOWHERE := js/wasm:./taskqueue js/wasm:./taskqueue/cmd js/wasm:./locks js/wasm:./kvqueue js/wasm:./bench

# The only modules the root module may require directly.
DEPS := github.com/stretchr/testify go.uber.org/goleak golang.org/x/sync

# A browser driver, terminal libraries, a metrics client and a file format: they belong to taskqueue/cmd.
COMMANDS_OWN := ^[^ ]+ .*(chromedp|displaywidth|creack/pty|x/term@|prometheus/|bbolt)

# The race detector, but not within SQLite: that is C made into Go, and takes fifteen times as long
# under it. Whatever uses it is looked at, with the locks and channels that SQLite itself takes.
RACE := -race -gcflags=modernc.org/...=-race=false

OUT := $(CURDIR)/out
BIN := $(OUT)/bin

BENCH ?= .

# $(call step,name) says what is done next.
# $(call each,name,command) does it in every module, up to the first failure;
# $(call tested,name,command) in those that have tests.
step = @echo "==> $(1)"
in = @for m in $(1); do echo "==> $(2): $$m"; \
	(cd $$m && $(3)) || { echo "make: $(2) failed in module $$m" >&2; exit 1; }; done
each = $(call in,$(MODULES),$(1),$(2))
tested = $(call in,$(TESTED),$(1),$(2))

.PHONY: help test lint race soak explore chaos house limits bench benchstat budgets taskbudgets lockbudgets kvbudgets cover fuzz tidy api
.PHONY: needs fmt tidied vet crossvet deps staticcheck apicheck structure unit counts benchtests fuzzshort exploreshort chaosshort tools

help:
	@echo 'make test     all checks, in every module: format, tidy, vet, staticcheck, API, tests, short fuzz runs'
	@echo 'make lint     the checks that run no test: format, vet (here and for other platforms), staticcheck, API'
	@echo 'make race     the tests under the race detector, repeated: COUNT=5'
	@echo 'make fuzz     every fuzz target for longer: FUZZTIME=1m'
	@echo 'make soak     random programs on workers, under the race detector: FUZZTIME=5m'
	@echo 'make explore  orders of the steps of async and scheduler: EXPLORE_TIME=5m each, EXPLORE_SEED=n'
	@echo 'make chaos    processes, stores and connections of taskqueue and locks are broken, and audited: CHAOS_TIME=5m CHAOS_SEED=n'
	@echo 'make bench    every budget beside others, and how throughput scales: docs/performance.md, docs/scalability.md; QUICK=1: two minutes, no servers; ONLY="B1|S3": these, printed; FROM=out/bench.records: the pages anew, with ONLY measured again'
	@echo 'make benchstat    the benchmarks of async, scheduler and jobqueue, summed up: COUNT=10 BENCH=.'
	@echo 'make budgets  the budgets of async, scheduler and jobqueue; BASE=commit: beside an older ambit; INSTRUCTIONS=1: counted; PROFILE=file; ONLY="B1|B7"'
	@echo 'make lockbudgets  locks beside other libraries on servers of its own: ONLY="TestContended|TestHandOff"'
	@echo 'make kvbudgets    kvqueue beside the queue recipes, on an etcd of its own: ONLY="TestOrder|TestEnqueue|TestDepth|TestKilled|TestSQLite"'
	@echo 'make taskbudgets  taskqueue beside asynq and river, on servers of its own: ONLY="T1|T2" ROUNDS=5'
	@echo 'make cover    coverage of each package and module; profiles in out/'
	@echo 'make house    how the files of async hang together, how large they are, and what a failure executes'
	@echo 'make limits   write down that the structure of async has become simpler; RAISE=1: or less simple'
	@echo 'make tidy     go mod tidy in every module'
	@echo 'make api      write the exported surface to api/'
	@echo
	@echo 'Only some modules: make race MODULES=. COUNT=20'

# make test does its checks three at a time on two cores: many tests only wait, for processes and for servers.
# $(call check,name,arguments of make,names of checks that have to pass before) adds a check; they
# begin in the order in which they stand here. Vet compiles every package as the tests need it, so the
# tests wait for it; staticcheck needs the tests compiled, too, so it waits for them. Nothing is compiled twice.
AT_A_TIME := 3
STEPS := $(OUT)/test
name = $(subst /,-,$(patsubst ./%,%,$(patsubst .,./root,$(1))))
define check
CHECKS += check-$(1)
.PHONY: check-$(1)
check-$(1): $(3:%=check-%)
	@MAKE="$$(MAKE)" tools/step.sh "$(STEPS)" $(1) $(2)
endef
unit_of = $(foreach m,$(filter $(1),$(TESTED)),$(eval UNITS += unit-$(call name,$(m)))$(eval $(call check,unit-$(call name,$(m)),unit MODULES=$(m),vet)))

# The longest begin first, those that only compute stand between those that wait.
LONG := ./locks . ./taskqueue ./kvqueue
$(eval $(call check,fmt,fmt))
$(eval $(call check,dependencies,tidied deps))
$(eval $(call check,vet,vet))
$(eval $(call check,fuzz,fuzzshort))
$(eval $(call check,elsewhere,crossvet ELSEWHERE=. PLATFORMS="windows/amd64 linux/386"))
$(call unit_of,./locks)
$(call unit_of,.)
$(call unit_of,./kvqueue)
$(eval $(call check,counts,counts,vet))
$(call unit_of,./taskqueue)
$(eval $(call check,chaos,chaosshort,vet))
$(eval $(call check,explore,exploreshort,vet))
$(call unit_of,$(filter-out $(LONG),$(TESTED)))
$(eval $(call check,bench,benchtests,vet))
$(eval $(call check,lint,staticcheck apicheck structure,$(UNITS)))

.PHONY: checks
checks: $(CHECKS)

test: needs
	@rm -rf "$(STEPS)" && mkdir -p "$(STEPS)"
	@$(MAKE) --no-print-directory -j$(AT_A_TIME) checks || { [ ! -e "$(STEPS)/failed" ] || \
		echo "make test: failed: $$(paste -sd' ' "$(STEPS)/failed"); all outputs are in $(STEPS)" >&2; exit 1; }
	@echo 'make test: every check passed; seconds of wall, user and system time of each, the longest last:'
	@sort -k2n "$(STEPS)/times" | awk '{ printf "%7d %7d %7d  %s\n", $$2, $$3, $$4, $$1 }'

lint: fmt vet crossvet staticcheck apicheck
	@echo 'make lint: every check passed'

needs:
	@tools/needs.sh

fmt:
	$(call step,gofmt)
	@diff=$$(gofmt -d .) && [ -z "$$diff" ] || \
		{ printf '%s\n' "$$diff"; echo 'make: gofmt failed: run gofmt -w .' >&2; exit 1; }

# Without it the first command that somebody runs in a clone changes go.work.sum. It looks at copies.
workspace := $(OUT)/workspace
tidied:
	$(call each,go mod tidy -diff,go mod tidy -diff)
	$(call step,go.work.sum has what go list -m all looks for)
	@rm -rf "$(workspace)" && mkdir -p "$(workspace)" && cp go.work go.work.sum "$(workspace)" && \
	for m in $(MODULES); do go work edit -dropuse "$$m" -use "$(CURDIR)/$$m" "$(workspace)/go.work" || exit 1; done; \
	GOWORK="$(workspace)/go.work" go list -m all >/dev/null && cmp -s go.work.sum "$(workspace)/go.work.sum" || \
	{ diff go.work.sum "$(workspace)/go.work.sum"; echo 'make: go.work.sum lacks these lines: run go list -m all and commit it' >&2; exit 1; }

deps:
	$(call step,root dependencies)
	@required=$$(go list -m -f '{{if not (or .Main .Indirect)}}{{.Path}}{{end}}' all) || exit 1; \
	extra=$$(grep -vxF $(addprefix -e ,$(DEPS)) <<<"$$required"); \
	[ -z "$${extra//[[:space:]]/}" ] || { echo "make: the root module may not require" $$extra >&2; exit 1; }
	@cd taskqueue && graph=$$(go mod graph) || exit 1; extra=$$(grep -E '$(COMMANDS_OWN)' <<<"$$graph"); \
	[ -z "$$extra" ] || { echo "make: who imports a store would require what only taskqueue/cmd needs:" "$$extra" >&2; exit 1; }

# Vet and staticcheck look at the packages as the tests of their module are built: see RACE and TESTED.
plain = $(filter-out $(TESTED),$(MODULES))

vet:
	$(call tested,go vet,go vet $(RACE) ./...)
	$(call in,$(plain),go vet,go vet ./...)
	@go vet -tags explore ./async/... ./scheduler/... ./internal/explore
	@go -C kvqueue vet $(RACE) -tags kvbudgets ./internal/etcdtest/budgets

# In make test only the root module, and for two platforms: to compile all that
# the others need takes minutes where it was not done before.
crossvet:
	@for p in $(PLATFORMS); do for m in $(or $(ELSEWHERE),$(MODULES)); do case " $(NOWHERE) " in *" $$p:$$m "*) continue;; esac; echo "==> go vet for $$p: $$m"; \
		(cd $$m && CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} go vet ./...) || \
		{ echo "make: go vet for $$p failed in module $$m" >&2; exit 1; }; done; done

staticcheck: tools
	$(call tested,staticcheck,GOFLAGS="$(GOFLAGS) $(RACE)" "$(BIN)/staticcheck" ./...)
	$(call in,$(plain),staticcheck,"$(BIN)/staticcheck" ./...)

# Modules with a record of their own, in a folder of api/ that has their name.
RECORDED := kvqueue locks otel taskqueue

apicheck: tools
	$(call step,exported surface against api/)
	@"$(BIN)/apicheck"
	@for m in $(RECORDED); do "$(BIN)/apicheck" -module $$m -api api/$$m || exit; done

api: tools
	@"$(BIN)/apicheck" -w
	@for m in $(RECORDED); do "$(BIN)/apicheck" -w -module $$m -api api/$$m || exit; done

# Knots, pairs and references that run up may only become fewer; sizes are printed.
LAYERS = "$(BIN)/layers" -dir async -layers tools/layers/layers.txt

structure: tools
	$(call step,structure of async against tools/layers/limits.txt)
	@$(LAYERS) -check tools/layers/limits.txt

limits: tools
	@$(LAYERS) -check tools/layers/limits.txt -w $(if $(RAISE),-raise)

house: tools
	$(call step,structure and size of async)
	@$(LAYERS) -scenes tools/layers/scenes -v

# go vet is a check of its own, so the tests need not do a part of it again. Ten minutes, which are the
# default, are near to what some packages take beside others on two cores.
unit:
	$(call tested,go test -race -shuffle=on,go test $(RACE) -shuffle=on -vet=off -timeout 25m ./...)

# The tests of stores of locks that have more rounds without the race detector, and stores that have them in make test: a server
# of SQL, one of keys, and a file. make counts STORES=./... has all.
STORES := ./pgstore ./redisstore ./sqlitestore
RANDOM := random_programs|tokens|histories
LOCKS_COUNTS := ^Test(DecidesAsTheBookDoes|Load|Store|StoreOnPoolOfUser|TheSuite)$$/^(seed|a_great_many_wait|$(RANDOM))|^TestStoreOnPoolsOfUsers$$/./^($(RANDOM))

counts:
	$(call step,go test: the full counts that the race detector is too slow for)
	@$(if $(filter .,$(MODULES)),tools/counted.sh ./async ./scheduler ./jobqueue)
	$(if $(filter ./locks,$(MODULES)),@LOCKS_PROGRAMS=$${LOCKS_PROGRAMS:-12} go -C locks test -vet=off -run '$(LOCKS_COUNTS)' $(STORES))

fuzzshort: FUZZTIME := $(or $(FUZZTIME),2s)
fuzz: FUZZTIME := $(or $(FUZZTIME),1m)
fuzzshort fuzz:
	$(call tested,fuzz $(FUZZTIME) each,"$(CURDIR)/tools/fuzz.sh" $(FUZZTIME))

race: COUNT := $(or $(COUNT),5)
race:
	$(call tested,go test -race -count=$(COUNT),go test $(RACE) -shuffle=on -vet=off -timeout 3h -count=$(COUNT) ./...)

soak: FUZZTIME := $(or $(FUZZTIME),5m)
soak:
	$(call step,soak of scheduler: $(FUZZTIME))
	@SOAK=$(FUZZTIME) go test -race -run TestSoak -timeout 0 -v ./scheduler

explore: EXPLORE_TIME := $(or $(EXPLORE_TIME),5m)
exploreshort: EXPLORE_TIME := 15s
explore exploreshort:
	$(call step,interleavings of async and scheduler: $(EXPLORE_TIME) each)
	@EXPLORE_TIME=$(EXPLORE_TIME) go test -tags explore -vet=off -count=1 -run '^TestExplore' -timeout 0 -v ./async ./scheduler

# Its processes stop and kill each other, which needs Linux.
chaos: LOCKS_TIME := $(or $(CHAOS_TIME),5m)
chaos: CHAOS_LOCKS := $(if $(filter Linux,$(shell uname)),$(filter ./locks,$(MODULES)))
chaos: CHAOS_TIME := $(or $(CHAOS_TIME),20s)
chaosshort: CHAOS_TIME := 20s
chaosshort: CHAOS_MODULES := $(filter ./taskqueue/cmd,$(MODULES))
chaos: CHAOS_MODULES := ./taskqueue/cmd
chaos chaosshort:
	$(call in,$(if $(filter Linux,$(shell uname)),$(CHAOS_MODULES)),chaos for $(CHAOS_TIME),\
		go run $(RACE) ./internal/chaos -time $(CHAOS_TIME) $(if $(CHAOS_SEED),-seed $(CHAOS_SEED)))
	$(call in,$(CHAOS_LOCKS),faults for $(LOCKS_TIME) a store,\
		LOCKS_SOAK=$(LOCKS_TIME) LOCKS_SEED=$(CHAOS_SEED) go test -vet=off -count=1 -run '^TestSoak$$$$' -timeout 0 ./...)

benchstat: COUNT := $(or $(COUNT),10)
benchstat: tools
	$(call step,benchmarks of async, scheduler and jobqueue)
	@go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) ./async/... ./scheduler/... ./jobqueue/... | tee "$(OUT)/bench.txt"
	$(call step,benchstat)
	@"$(BIN)/benchstat" async="$(OUT)/bench.txt"

# The program builds the others that it runs. A choice and a quick run install nothing.
bench:
	@$(if $(QUICK)$(ONLY),,tools/needs.sh)
	@mkdir -p "$(BIN)" && go -C bench build -o "$(BIN)/report" ./report
	@"$(BIN)/report" -only '$(ONLY)' $(if $(QUICK),-quick) $(if $(FROM),-from '$(FROM)')

benchtests:
	$(call step,go test of what judges measurements and writes the pages)
	@go -C bench test -vet=off ./internal/... ./report

# The same program is built with the older ambit, whose code is checked out into
# a folder that is removed.
budgets:
	$(call step,$@)
	@mkdir -p "$(BIN)" && go -C bench build -o "$(BIN)/budgets" ./budgets
ifdef BASE
	@set -e; older=$$(mktemp -d); trap 'git worktree remove --force "$$older/ambit"; rm -rf "$$older"' EXIT; \
	git worktree add --quiet --detach "$$older/ambit" "$(BASE)"; \
	cp bench/go.mod bench/go.sum "$$older/"; \
	go mod edit -replace github.com/ambit-go/ambit="$$older/ambit" "$$older/go.mod"; \
	go -C bench build -modfile="$$older/go.mod" -o "$$older/budgets" ./budgets; \
	"$(BIN)/budgets" -only '$(ONLY)' $(if $(INSTRUCTIONS),-instructions -rounds 5) -base "$$older/budgets"
else
	@"$(BIN)/budgets" -only '$(ONLY)' $(if $(QUICK),-quick) $(if $(PROFILE),-profile '$(PROFILE)') $(if $(INSTRUCTIONS),-instructions -rounds 5)
endif

lockbudgets:
	@tools/needs.sh
	@go -C bench test -count=1 -timeout 30m -run '$(ONLY)' -v ./locks | grep -v "^=== "

# The recipes are internal to kvqueue, so this is not in bench.
kvbudgets:
	$(call step,$@)
	@tools/needs.sh
	@go -C kvqueue test -tags kvbudgets -count=1 -timeout 40m -run '$(ONLY)' -v ./internal/etcdtest/budgets | grep -v "^=== "

taskbudgets:
	$(call step,$@)
	@tools/needs.sh
	@mkdir -p "$(BIN)" && go -C bench build -o "$(BIN)/taskbudgets" ./taskqueue
	@"$(BIN)/taskbudgets" -only '$(ONLY)' -rounds $(or $(ROUNDS),0)

cover:
	@mkdir -p "$(OUT)"
	$(call tested,coverage,profile="$(OUT)/$$(basename $$(go list -m)).cover" && \
		go test -coverprofile="$$profile" ./... && go tool cover -func="$$profile" | tail -n 1)

tidy:
	$(call each,go mod tidy,go mod tidy)

tools:
	$(call step,building the tools)
	@mkdir -p "$(BIN)" && go -C tools build -o "$(BIN)/" tool
