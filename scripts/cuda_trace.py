#!/usr/bin/env python3
"""What scripts/cuda_trace.c wrote: sums by name, then what is longer than 0.8 ms in order, with the gap before it.

scripts/cuda_trace.py TRACE
"""

import collections
import pathlib
import sys


def main() -> None:
    sums = collections.defaultdict(lambda: [0, 0.0, 0.0])
    rows = []
    for line in pathlib.Path(sys.argv[1]).read_text().splitlines():
        kind, start, duration, name, *details = line.split()
        rows.append((float(start), float(duration), kind, name, " ".join(details)))
        entry = sums[kind, name]
        entry[0] += 1
        entry[1] += rows[-1][1]
        entry[2] = max(entry[2], rows[-1][1])
    print("milliseconds, times, the longest")
    for (kind, name), (n, total, longest) in sorted(sums.items(), key=lambda item: -item[1][1]):
        print(f"{kind} {total:9.2f} {n:6d} {longest:8.2f} {name}")
    print("start, milliseconds, gap on the card before")
    end = 0.0
    for start, duration, kind, name, details in sorted(rows):
        if kind == "A":
            if duration > 2.0:
                print(f"{start:10.2f} {duration:8.2f}          A {name}")
            continue
        if duration > 0.8 or start - end > 2.0:
            print(f"{start:10.2f} {duration:8.2f} {start - end:8.2f} {kind} {name} {details}")
        end = max(end, start + duration)


if __name__ == "__main__":
    main()
