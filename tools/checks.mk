# Set-up, tests, lint, install: included by ../Makefile.

FUZZ_SECONDS ?= 60
JOBS         ?= $(shell nproc)
LINTED       := $(filter %.c,$(SOURCES))
SCRIPTS       = $(wildcard tools/* tests/integration/* tests/escape/* tests/perf/* .ci/run)
MAN          := $(wildcard man/*.[1-8])

export LINT_FLAGS = $(CPPFLAGS)

# Leaks are looked for by the unit tests only: the tracer that finds them is
# refused by processes that have made themselves non-dumpable.
export ASAN_OPTIONS ?= abort_on_error=1:detect_stack_use_after_return=1
export UBSAN_OPTIONS ?= print_stacktrace=1
export TSAN_OPTIONS ?= suppressions=$(CURDIR)/tests/tsan.supp:halt_on_error=1:second_deadlock_stack=1

# ---- from nothing to a result ----

setup:
	$(Q)tools/setup

demo: all
	$(Q)tools/demo $(B)/pale

# ---- tests ----

check: check-unit check-integration check-fuzz

check-unit: $(UNIT_TESTS)
	$(Q)tools/run-units -j $(JOBS) $(UNIT_TESTS)

# The sanitizers slow everything; and races show there without many rounds.
check-integration: all $(TEST_TOOLS)
	$(Q)B=$(B) $(if $(SAN),PALE_SAN=$(SAN) TIME_FACTOR=4 PALE_RACE_ROUNDS=100 PALE_KILL_ROUNDS=10 ASAN_OPTIONS=$(ASAN_OPTIONS):detect_leaks=0) \
	    tests/integration/run -j $(JOBS) $(if $(SAN),-s)

check-fuzz:
	$(Q)$(MAKE) --no-print-directory SAN=fuzz fuzz-run FUZZ_ARGS="-runs=100000 -max_total_time=10"

fuzz:
	$(Q)$(MAKE) --no-print-directory SAN=fuzz fuzz-run FUZZ_ARGS="-max_total_time=$(FUZZ_SECONDS)"

fuzz-run: $(FUZZERS)
	$(Q)tools/run-fuzzers -j $(JOBS) $(FUZZERS) -- $(FUZZ_ARGS)

# The numbers of the issues instead of those that fit.
soak: all $(TEST_TOOLS)
	$(Q)PALE_RACE_ROUNDS=10000 PALE_KILL_ROUNDS=500 \
	    PALE_COHERENCE_ROUNDS=100000 PALE_SOAK=1 TIME_FACTOR=20 \
	    B=$(B) tests/integration/run -j $(JOBS)

bench: all $(TEST_TOOLS)
	$(Q)for t in tests/perf/*; do [ ! -x $$t ] || B=$(B) $$t || exit 1; done

# ---- lint, cheapest first ----

lint: lint-format lint-layers lint-text lint-sh lint-man lint-cppcheck lint-tidy

lint-format:
	@echo "  FORMAT"
	$(Q)clang-format --dry-run --Werror $(SOURCES)

lint-layers:
	@echo "  LAYERS"
	$(Q)tools/check-layers

lint-text:
	@echo "  TEXT"
	$(Q)tools/check-text && tools/check-protocol

lint-sh:
	@echo "  SHELLCHECK"
	$(Q)shellcheck -x -P SCRIPTDIR -S warning $$(grep -lE '^#! ?/bin/(ba)?sh|^# shellcheck shell=' $(SCRIPTS) 2>/dev/null)

lint-man: $(B)/pale
	@echo "  MAN"
	$(Q)tools/check-man $(B)/pale

lint-cppcheck:
	@echo "  CPPCHECK"
	$(Q)cppcheck --quiet -j $(JOBS) --std=c11 --enable=warning,performance,portability \
	    --library=tools/cppcheck.cfg --inline-suppr \
	    --suppress=memleak --suppress=resourceLeak \
	    --error-exitcode=1 -I. $(filter-out tests/%,$(LINTED))

lint-tidy:
	@echo "  TIDY"
	$(Q)printf '%s\n' $(LINTED) | xargs -P $(JOBS) -n 1 tools/lint-file tidy

lint-analyze:
	@echo "  ANALYZE"
	$(Q)printf '%s\n' $(filter-out tests/%,$(LINTED)) | \
	    xargs -P $(JOBS) -n 1 tools/lint-file analyze

# ---- everything, as .ci/run calls it ----

ci:
	$(Q)tools/ci

# The same tests on the next release, in a chroot.
trixie:
	$(Q)tools/trixie

# ---- install ----

BINDIR  ?= $(PREFIX)/bin
DATADIR ?= $(PREFIX)/share
# mount(8) looks for its helpers in /sbin alone.
SBINDIR ?= $(if $(filter /usr /usr/local,$(PREFIX)),/usr/sbin,$(PREFIX)/sbin)
INSTALL := install -D

installed = $(BINDIR)/pale $(LIBEXEC)/pale-mount-helper $(SBINDIR)/mount.fuse.pale \
	    $(foreach m,$(MAN),$(DATADIR)/man/man$(subst .,,$(suffix $(m)))/$(notdir $(m))) \
	    $(DATADIR)/bash-completion/completions/pale \
	    $(DATADIR)/zsh/site-functions/_pale \
	    $(DATADIR)/fish/vendor_completions.d/pale.fish

install: all
	$(INSTALL) -m 755 $(B)/pale $(DESTDIR)$(BINDIR)/pale
	$(INSTALL) -m 755 $(B)/pale-mount-helper $(DESTDIR)$(LIBEXEC)/pale-mount-helper
	mkdir -p $(DESTDIR)$(SBINDIR)
	ln -sf $(BINDIR)/pale $(DESTDIR)$(SBINDIR)/mount.fuse.pale
	for m in $(MAN); do \
		$(INSTALL) -m 644 $$m $(DESTDIR)$(DATADIR)/man/man$${m##*.}/$${m##*/}; \
	done
	$(INSTALL) -m 644 tools/completions/bash $(DESTDIR)$(DATADIR)/bash-completion/completions/pale
	$(INSTALL) -m 644 tools/completions/zsh $(DESTDIR)$(DATADIR)/zsh/site-functions/_pale
	$(INSTALL) -m 644 tools/completions/fish $(DESTDIR)$(DATADIR)/fish/vendor_completions.d/pale.fish

uninstall:
	rm -f $(addprefix $(DESTDIR),$(installed))
	-rmdir $(DESTDIR)$(LIBEXEC)

dist:
	git archive --prefix=pale-$(VERSION)/ -o pale-$(VERSION).tar.gz HEAD

clean:
	rm -rf build build-* pale-*.tar.gz

.PHONY: all tests setup demo check check-unit check-integration check-fuzz fuzz \
	fuzz-run soak bench lint lint-format lint-layers lint-text lint-sh \
	lint-man lint-cppcheck lint-tidy lint-analyze ci trixie install uninstall dist \
	clean force
.SECONDARY:
