# Each target does all its own set-up, asks for nothing, and prints what it
# installs.

.PHONY: help setup connectors interpreted build demo test bench fuzz lint

CONNECTORS := $(or $(CARGO_TARGET_DIR),target)/connectors

help: ## This list
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "make %-11s %s\n", $$1, $$2}' Makefile

setup: ## Install what building needs
	@scripts/setup

connectors: setup ## Build the connectors into target/connectors
	@scripts/build-connectors $(CONNECTORS)

interpreted: ## Build the connectors in JavaScript and Python, with tools from npm and PyPI
	@scripts/setup interpreted
	@scripts/build-interpreted $(CONNECTORS)

build: setup ## Build connectors and host, into target/connectors and target/release/tidegate
	@scripts/build

# One connector: the others would add minutes to the first one.
demo: setup ## Materialize examples/quickstart into a SQLite file
	@scripts/build connectors-fixtures/sqlite
	@scripts/demo

test: build interpreted ## Run every test
	@scripts/test

bench: build ## Measure; writes target/bench/*.json
	@scripts/bench

fuzz: setup ## Fuzz the validator, a minute for each target
	@scripts/fuzz

lint: setup ## Formatting, clippy, documentation, licences
	@scripts/lint
