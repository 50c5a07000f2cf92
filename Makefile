.DEFAULT_GOAL := help
PY := .venv/bin/python
SHELL := /bin/bash

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

setup: ## make .venv with pinned packages and a Toxiproxy server (quick when it is there)
	@deploy/setup.sh

demo: packages ## lose a link between a broker and a NameServer, and judge what happened
	@.venv/bin/nemesrv run broker-partition

test: packages ## format, lint, types beside the test suite
	@$(PY) -m tests.run_suite --prepare $(ARGS)

test-all: packages ## everything: the nightly proofs included
	@$(PY) -m tests.run_suite --prepare --all $(ARGS)

packages:
	@deploy/setup.sh packages

check: packages ## format, lint, types, layers
	@$(PY) -m ruff format --check --quiet .
	@$(PY) -m ruff check --quiet .
	@.venv/bin/lint-imports --no-cache >.venv/lint-imports.log & layers=$$!; \
		$(PY) -m mypy && { wait $$layers || { cat .venv/lint-imports.log; exit 1; }; }

format: packages ## rewrite the code in the project's format
	@$(PY) -m ruff check --fix --quiet .
	@$(PY) -m ruff format --quiet .

docs: packages ## write anew what is written from the code: tables and pages of docs/
	@$(PY) -m tests.generated

dist: packages ## build the wheel and the source distribution into dist/, and try README's commands with the wheel in an empty environment (about 4 minutes)
	@$(PY) -m tests.packaging

site: packages ## build/site: docs/ as a site with a search, to read without a network (open build/site/start.html)
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --quiet && echo "build/site/start.html"

pictures: packages ## docs/pictures: terminal and report of README's commands, as they are now (needs Chromium)
	@$(PY) -m tests.pictures

test-fast: packages ## the tests that start neither Ray nor Spark nor Toxiproxy nor Java programs nor a browser
	@$(PY) -m tests.run_suite --fast $(ARGS)

selftest: setup ## run every planted defect and its clean twin on the virtual clock, and print the table
	@.venv/bin/nemesrv selftest --clock virtual

differential: setup ## 100,000 random operations a profile on Apache's own NameServer and on ours (about 15 minutes on 2 cores)
	@NEMESRV_DIFFERENTIAL_OPERATIONS=$${NEMESRV_DIFFERENTIAL_OPERATIONS:-100000} $(PY) -m pytest tests/differential

apache-tests: setup ## Apache's own integration tests (rocketmq-test 4.9.7) at our NameServer and brokers (about 5 minutes)
	@$(PY) -m tests.apache

random-scenarios: setup ## 400 random scenarios with nothing planted, in which no check may find anything (about 40 minutes on 2 cores)
	@$(PY) -m tests.chaos.experiment.virtual.random_everything --scenarios $${SCENARIOS:-400}

hosts: setup ## every shipped scenario on three hosts, which are network namespaces of this machine (needs root and iproute2; about 12 minutes; make hosts SELFTEST=1: the self-test there, too; make hosts SEEDS=1..20: one scenario a seed)
	@$(PY) -m tests.hosts $(if $(SEEDS),--mix --seeds $(SEEDS)) && $(if $(SELFTEST),$(PY) -m tests.hosts --selftest,true)

fuzz: setup ## ten million wrong inputs to everything that reads bytes (about 15 minutes on 2 cores)
	@$(PY) -m tests.fuzz

apache: setup ## the shipped scenarios on Apache's NameServers and brokers, 4.9.7 and 5.3.3, and the table of docs/apache.md (about 35 minutes on 2 cores; make apache ARGS="smoke --implementation apache-5.3.3")
	@$(PY) -m tests.apache_matrix $(ARGS)

clients: setup ## every client of tests/clients_matrix through nemesrv conform, and docs/clients.md (about 5 minutes each; make clients CLIENTS="go-2.1.2")
	@$(PY) -m tests.clients_matrix $(CLIENTS)

bench: setup ## the benchmarks, each beside its baseline
	@$(PY) -m tests.bench $(ARGS)

.PHONY: help setup packages demo dist site pictures apache test test-all check format test-fast selftest differential apache-tests random-scenarios hosts fuzz bench docs clients
