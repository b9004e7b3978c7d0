# Set-up, tests, lint, install: included by ../Makefile.

check-unit: $(UNIT_TESTS)
	@status=0; for t in $^; do $$t || status=1; done; exit $$status

lint-layers:
	$(Q)tools/check-layers

clean:
	rm -rf build build-*

.PHONY: all tests check-unit lint-layers clean
.SECONDARY:
