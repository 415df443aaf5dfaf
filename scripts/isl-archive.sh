#!/bin/sh
# Writes crates/isl_sys/isl-0.27.tar.gz: what the library needs of isl's release, unchanged, so that it
# builds with a C compiler alone. Give it an unpacked release of isl 0.27 or the folder `isl` of the crate
# isl-rs 0.3.1; its imath must be there too.
set -eu
isl=${1:?"usage: $0 FOLDER-OF-ISL"}
archive=$PWD/crates/isl_sys/isl-0.27.tar.gz
[ -d crates/isl_sys ] || { echo "isl-archive: call it in the repository's root" >&2; exit 1; }
grep -q 'AC_INIT(\[isl\], \[0.27\]' "$isl/configure.ac" || { echo "isl-archive: $isl is not isl 0.27" >&2; exit 1; }
cd "$isl"
# Sources, private headers and what they include; no program, test or interface for other languages.
files=$(ls LICENSE AUTHORS *.c *.h include/isl/*.[ch] imath/LICENSE imath_wrap/*.[ch] \
    imath/gmp_compat.[ch] imath/imath.[ch] imath/imrat.[ch] 2>/dev/null |
    grep -v -e '_test' -e '^isl_config\.h$' -e '^gitversion\.h$' -e '^include/isl/stdint\.h$' \
        -e '^check_reparse' -e '^check_parse_fail' \
        -e '^\(bound\|cat\|closure\|codegen\|flow\|flow_cmp\|pip\|polyhedron_[a-z_]*\|schedule\|schedule_cmp\)\.c$')
# shellcheck disable=SC2086
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime='2024-09-02 00:00Z' -cf - $files | gzip -9n >"$archive"
sha256sum "$archive"
