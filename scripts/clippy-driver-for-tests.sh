#!/bin/sh
# The compiler of .ci/run: clippy, which leaves out to optimise what a library's unit tests compile a second time.
case " $* " in *" --test "*) set -- "$@" -C opt-level=0 ;; esac
exec clippy-driver "$@"
