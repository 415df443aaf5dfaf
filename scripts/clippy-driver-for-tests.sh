#!/usr/bin/env bash
# The compiler of .ci/run: clippy, which leaves out to optimise what a library's unit tests compile a second time.
# not sh: dash hands on no variable whose name has a dash, such as those of the binaries of studies
case " $* " in *" --test "*) set -- "$@" -C opt-level=0 ;; esac
exec clippy-driver "$@"
