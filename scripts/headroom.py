#!/usr/bin/env python3
"""What is left of each operator action: the fastest record of a database against the time that the card needs for
its bytes or its operations alone. Prints a table, the largest headroom first.

    python3 scripts/headroom.py results/h200/tuned.jsonl PUBLISHED.csv

Bytes are the compulsory ones of the record: maps, coordinates, and degrees of freedom once each, results twice.
Operations are those that the mapped kernel executes, products with padding included; matrix instructions
(`matrix_cells`, `matrix_groups`) at twice the rate of others. Straight-line code leaves out the terms that a table
makes zero, which are counted: its arithmetic in orbits is no floor. A launch takes 5.5 us between two events.
PUBLISHED.csv has columns operator, dim, degree, h200nvl_us, and lines of comments.
"""
import csv
import json
import math
import sys

LAUNCH = 5.5


def kinds(mapping):
    """The strategies of a mapping, from outside in."""
    return [mapping["strategy"]] + (kinds(mapping["then"]) if "then" in mapping else [])


def fastest(path):
    """The fastest record of each case that was right."""
    best = {}
    for line in open(path):
        record = json.loads(line)
        measured = record["outcome"].get("measured")
        case = record["workload"]["case"]
        if measured and measured["median_s"] < best.get(case, (math.inf,))[0]:
            best[case] = (measured["median_s"], record)
    return best


def main():
    published = {}
    lines = (line for line in open(sys.argv[2]) if not line.startswith("#"))
    for row in csv.DictReader(lines):
        published[f"{row['operator'].lower()}.{row['dim']}D.P{row['degree']}"] = float(row["h200nvl_us"])
    rows = []
    for case, (seconds, record) in fastest(sys.argv[1]).items():
        work, device = record["workload"], record["device"]
        by_instructions = any(kind in ("matrix_cells", "matrix_groups") for kind in kinds(record["parameters"]))
        rate = device["fp64_flops_per_s"] * (2 if by_instructions else 1)
        flops = record["outcome"]["measured"].get("executed_flops") or work["flops"]  # early records have none
        memory = work["dram_bytes"] / device["dram_bytes_per_s"] * 1e6
        arithmetic = flops / rate * 1e6
        parameters = record["parameters"]
        if parameters["strategy"] == "orbits" and not parameters.get("points") and not by_instructions:
            arithmetic = 0.0
        floor = max(memory, arithmetic) + LAUNCH
        rows.append((seconds * 1e6 / floor, case, seconds * 1e6, memory, arithmetic, published[case]))
    print("| case | found µs | published / found | memory µs | arithmetic µs | binds | found / floor |")
    print("|---|--:|--:|--:|--:|---|--:|")
    for headroom, case, found, memory, arithmetic, before in sorted(rows, reverse=True):
        binds = "memory" if memory > arithmetic else "arithmetic"
        print(
            f"| {case} | {found:.1f} | {before / found:.2f} | {memory:.1f} | {f'{arithmetic:.1f}' if arithmetic else '–'} | {binds} | {headroom:.2f} |"
        )
    mean = math.exp(sum(math.log(before / found) for _, _, found, _, _, before in rows) / len(rows))
    at_floor = math.exp(sum(math.log(headroom) for headroom, *_ in rows) / len(rows))
    print(f"\n{len(rows)} cases: {mean:.2f} times published, geometric mean; at the floors {mean * at_floor:.2f}")


if __name__ == "__main__":
    main()
