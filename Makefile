.POSIX:
.PHONY: help run test bench check docs package dist fmt deps mutants

APPS = --manifest-path apps/Cargo.toml
BENCH = --manifest-path bench/Cargo.toml

help: ## Show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1	\2/p' Makefile

run: ## Build the server and serve on this machine, with nothing else installed
	cargo run --profile quick --locked --bin headgate -- serve

test: deps ## Install what the tests need and run them all
	@log=$$(mktemp) && trap 'rm -f "$$log"' EXIT && status=0; \
	export HEADGATE_SKIP_LOG="$$log"; \
	cargo test --workspace --features kafka --locked --no-fail-fast || status=$$?; \
	cargo test $(APPS) --workspace --locked --no-fail-fast || status=$$?; \
	if [ -s "$$log" ]; then echo 'skipped:'; sort -u "$$log" | sed 's/^/  /'; else echo 'no test was skipped'; fi; \
	exit $$status

bench: ## Compare with other limiters and with Redis's own ceiling, in one run
	bench/run

mutants: ## Change the engine one expression at a time, and expect a test to fail
	scripts/mutants

check: deps ## Check format, lints, docs, licences and advisories
	cargo fmt --all --check
	cargo fmt --all $(APPS) --check
	cargo fmt $(BENCH) --check
	cargo clippy --workspace --features kafka --all-targets --locked -- -D warnings
	cargo clippy $(APPS) --workspace --all-targets --locked -- -D warnings
	cargo clippy $(BENCH) --all-targets --locked -- -D warnings
	RUSTFLAGS='-D warnings' cargo check -p headgate-engine -p headgate-store-memory --no-default-features --locked --target-dir target/no-default-features
	scripts/plots --check
	scripts/docs
	RUSTDOCFLAGS='-D warnings' cargo doc $(APPS) --workspace --no-deps --locked
	scripts/deny
	scripts/package --no-verify --quiet

docs: ## Build the docs site, with the Rust API beside it, in target/docs
	scripts/docs

package: ## Package the published crates, and build each from its package alone
	scripts/package

dist: ## Build what users download: binary, packages, image, checksums, in target/dist
	scripts/dist

fmt: ## Format all code
	cargo fmt --all
	cargo fmt --all $(APPS)
	cargo fmt $(BENCH)

deps: ## Install what the tests start and the build needs, if it is missing
	@scripts/install-test-deps
