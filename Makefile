# Every check of the repository. The modules are those of go.work; each is
# checked by itself (GOWORK=off), with the versions that its users get.

SHELL := bash
.SHELLFLAGS := -o pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

export GOWORK := off
export GOFLAGS += -buildvcs=false

MODULES := $(shell go work edit -json go.work | sed -n 's/.*"DiskPath": "\(.*\)".*/\1/p')
ifeq ($(MODULES),)
$(error go.work names no module, or go is not in PATH)
endif

# The only modules the root module may require directly.
DEPS := github.com/stretchr/testify go.uber.org/goleak golang.org/x/sync

OUT := $(CURDIR)/out
BIN := $(OUT)/bin

FUZZTIME ?= 5s
BENCH    ?= .
PKG      ?= ./...

# step names what is being done.
# each does a step in every module: $(call each,name,command).
step = @echo "==> $(1)"
each = @for m in $(MODULES); do echo "==> $(1): $$m"; \
	(cd $$m && $(2)) || { echo "make: $(1) failed in module $$m" >&2; exit 1; }; done

.PHONY: help test lint race bench cover fuzz tidy api
.PHONY: fmt tidied vet deps staticcheck apicheck unit fuzzshort tools

help:
	@echo 'make test     all checks, in every module: format, tidy, vet, staticcheck, API, tests, short fuzz runs'
	@echo 'make lint     the checks that run no test: format, vet, staticcheck, API'
	@echo 'make race     the tests under the race detector, repeated: COUNT=5 PKG=./...'
	@echo 'make fuzz     every fuzz target for longer: FUZZTIME=1m'
	@echo 'make bench    the benchmarks of async, summed up by benchstat: COUNT=10 BENCH=.'
	@echo 'make cover    coverage of each package; profiles in out/'
	@echo 'make tidy     go mod tidy in every module'
	@echo 'make api      write the exported surface to api/'

test: fmt tidied deps vet staticcheck apicheck unit fuzzshort
	@echo 'make test: every check passed'

lint: fmt vet staticcheck apicheck
	@echo 'make lint: every check passed'

fmt:
	$(call step,gofmt)
	@diff=$$(gofmt -d .) && [ -z "$$diff" ] || \
		{ printf '%s\n' "$$diff"; echo 'make: gofmt failed: run gofmt -w .' >&2; exit 1; }

tidied:
	$(call each,go mod tidy -diff,go mod tidy -diff)

deps:
	$(call step,root dependencies)
	@extra=$$(go list -m -f '{{if not (or .Main .Indirect)}}{{.Path}}{{end}}' all | grep -vxF '$(subst $( ) ,'$$'\n'',$(DEPS))'); \
		[ -z "$$extra" ] || { echo "make: the root module may not require $$extra" >&2; exit 1; }

vet:
	$(call each,go vet,go vet ./...)

staticcheck: tools
	$(call each,staticcheck,$(BIN)/staticcheck ./...)

apicheck: tools
	$(call step,exported surface against api/)
	@$(BIN)/apicheck

api: tools
	@$(BIN)/apicheck -w

unit:
	$(call each,go test -race -shuffle=on,go test -race -shuffle=on ./...)

fuzzshort:
	$(call each,fuzz $(FUZZTIME) each,$(CURDIR)/tools/fuzz.sh $(FUZZTIME))

fuzz: FUZZTIME = 1m
fuzz: fuzzshort

race: COUNT ?= 5
race:
	$(call each,go test -race -count=$(COUNT),go test -race -shuffle=on -count=$(COUNT) $(PKG))

bench: COUNT ?= 10
bench: tools
	$(call step,benchmarks of async)
	@go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) ./async/... | tee $(OUT)/bench.txt
	@$(BIN)/benchstat $(OUT)/bench.txt

cover: tools
	$(call each,coverage,go test -coverprofile=$(OUT)/cover.out ./... && go tool cover -func=$(OUT)/cover.out | tail -n 1)

tidy:
	$(call each,go mod tidy,go mod tidy)

tools:
	$(call step,building the tools)
	@mkdir -p $(BIN) && go -C tools build -o $(BIN)/ tool
