# Tasting. `make help` lists the targets.

CARGO  ?= cargo
PREFIX ?= /usr/local
# Where the binaries to install lie: `make install BUILT=target/debug` takes others than the release build.
TARGET := $(or $(CARGO_TARGET_DIR),target)
BUILT  ?= $(TARGET)/release

.PHONY: build help demo check test-tools lint deny test lab-short fresh packages-test ci-test deb tarball subjects bench lab toolchains fuzz install uninstall clean

build: ## the release build (the default)
	$(CARGO) build --release --locked --bins

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

demo: build ## fingerprints of a small project before and after three edits
	@BUILT='$(BUILT)' scripts/demo.sh

check: test-tools ## install what the tests need, then run everything
	@$(MAKE) --no-print-directory lint deny test lab-short

test-tools: ## compilers, linkers and build systems, where they are missing
	@scripts/install-test-tools.sh

lint: ## rustfmt and clippy
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

deny: ## licences, bans and sources of the dependencies, where cargo-deny is installed
	@if $(CARGO) deny --version >/dev/null 2>&1; then $(CARGO) deny check licenses bans sources; \
	else echo 'cargo-deny is not installed: licences, bans and sources are not checked'; fi

test: ## all tests (`make check` installs the tools they need; `cargo test` runs those that need none)
	$(CARGO) test --locked --workspace --lib --bins --no-fail-fast -- --include-ignored --skip write_fixtures
	$(CARGO) build --locked --workspace --bins
	PATH="$$PATH:$${CARGO_HOME:-$$HOME/.cargo}/bin" $(CARGO) test --locked --test it -- --include-ignored

lab-short: ## two minutes of the laboratory: random programs and their mutants, damaged inputs, faults
	$(CARGO) build --locked --workspace --bins
	@$(TARGET)/debug/lab --short --folder $(TARGET)/lab/short

fresh: ## `make demo` and `make check` on a minimal Debian in a folder (as root): before each release, not a part of `make check`
	@scripts/fresh.sh

subjects: build test-tools ## real projects, plainly and with Tasting: the same results, and what is reused; a table
	@BUILT='$(BUILT)' scripts/subjects.py $(SUBJECTS)

bench: build test-tools ## what Tasting costs, as ratios measured in one run
	@BUILT='$(BUILT)' scripts/bench.py

lab: build test-tools ## hunt for missed changes: MINUTES (60), SEED (1), LEVEL (mixed), COMPILERS (gcc,clang), MUTATIONS of real projects (20); goes on where it was
	$(CARGO) build --release --locked -p lab
	@$(TARGET)/release/lab programs runs fuzz faults suites mutations --built '$(BUILT)' --folder $(TARGET)/lab \
		--minutes $(or $(MINUTES),60) --seed $(or $(SEED),1) --level $(or $(LEVEL),mixed) --compilers $(or $(COMPILERS),gcc,clang) --mutations $(or $(MUTATIONS),20)
	@BUILT='$(abspath $(BUILT))' scripts/fuzz.sh $(or $(SECONDS),60)

toolchains: test-tools ## other versions of the compilers and lld (as root): TOOLCHAINS (all), MINUTES of the laboratory for each (10); a table
	$(CARGO) build --locked --workspace --bins
	@BUILT=$(TARGET)/debug scripts/toolchains.py --minutes $(or $(MINUTES),10) $(TOOLCHAINS)

fuzz: build ## fuzz the readers of foreign bytes, each for SECONDS (60); not a part of `make check`, its build is slow
	@BUILT='$(abspath $(BUILT))' scripts/fuzz.sh $(SECONDS)

install: $(if $(filter $(TARGET)/release,$(BUILT)),build) ## into $(DESTDIR)$(PREFIX)
	@BUILT='$(BUILT)' DESTDIR='$(DESTDIR)' scripts/install.sh '$(PREFIX)'

uninstall: ## what `make install` put there
	@DESTDIR='$(DESTDIR)' scripts/install.sh --remove '$(PREFIX)'

deb: $(if $(filter $(TARGET)/release,$(BUILT)),build) ## a package for Debian, in target/packages
	@BUILT='$(BUILT)' scripts/package.sh deb $(TARGET)/packages

tarball: ## static programs for any Linux, with install.sh, in target/packages (needs musl-tools, and rustup or its musl target)
	@CARGO='$(CARGO)' BUILT='$(filter-out $(TARGET)/release,$(BUILT))' scripts/package.sh tarball $(TARGET)/packages

packages-test: deb tarball ## each package in a minimal Debian (as root): installed, used, removed, nothing left
	@FILES='$(abspath $(TARGET))/packages' scripts/fresh.sh 'scripts/packages-try.sh /root/files'

ci-test: ## what is there for GitHub and GitLab: linted, and its shell steps executed as their runners do
	@BUILT='$(BUILT)' scripts/try-ci.py

clean: ## all that was built
	$(CARGO) clean
