# Every target is one script: what runs here is what runs in CI.

.PHONY: demo test test-all bench book fuzz harvest mutations packages

demo:
	@scripts/demo.sh

test:
	.ci/run

# Adds the cases that `make test` leaves out: all 70 operator actions everywhere, 20,000 random recipes,
# 1,000 sets of tiling parameters against the formulas; random programs from a fresh seed; forms of DOLFINx
# where Python 3.12 is there.
test-all:
	KINGPOST_TEST_ALL=1 .ci/run

bench: packages
	cargo bench --profile dist --bench engine

# The book as HTML: target/book.
book:
	@scripts/book.sh

# The readers of kernels, recipes and forms, FUZZ_SECONDS each (1800).
fuzz:
	scripts/fuzz.sh

# Fresh random pairs by every compiler that is here: CONTRIBUTING.md, results/compilers.md.
harvest:
	scripts/harvest.sh

# Deletes each proof condition in turn and notes the tests that fail: results/mutations.md.
mutations:
	scripts/mutation_check.py

packages:
	scripts/install-system-packages.sh
