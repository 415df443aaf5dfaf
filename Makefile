# Every target is one script: what runs here is what runs in CI.

.PHONY: demo test test-all bench packages

demo: packages
	scripts/demo.sh

test:
	.ci/run

# Adds the cases that `make test` leaves out: all 70 operator actions everywhere.
test-all:
	PURLIN_TEST_ALL=1 .ci/run

bench: packages
	cargo bench --bench engine

packages:
	scripts/install-system-packages.sh
