"""Pairs as `tests/random_recipes/harvest.rs` writes them: sources, bytes, and how results are compared."""
import json
import math
import struct
from dataclasses import dataclass

# letters of `struct`
REALS = {"f64": "d", "f32": "f", "f16": "e", "c128": "d", "c64": "f"}
INTEGERS = {"bool": "B", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q"}
# what rounds apart is rounded to neighbours
STEPS = {"f16": 2.0**-10, "bf16": 2.0**-7}


def values(ty, data):
    """The numbers of an array; a complex one has two an element."""
    if ty == "bf16":
        words = struct.unpack(f"<{len(data) // 2}H", data)
        return struct.unpack(f"<{len(words)}f", struct.pack(f"<{len(words)}I", *(word << 16 for word in words)))
    letter = REALS[ty] if ty in REALS else INTEGERS[ty]
    return struct.unpack(f"<{len(data) // struct.calcsize(letter)}{letter}", data)


@dataclass
class Array:
    """An array of a program: its bytes before, and after where it is a result."""

    name: str
    ty: str
    first: bytes
    expected: bytes | None
    holes: bytes | None

    @classmethod
    def read(cls, line):
        optional = {key: bytes.fromhex(line[key]) if key in line else None for key in ("expected", "holes")}
        return cls(line["name"], line["ty"], bytes.fromhex(line["first"]), **optional)

    def differ(self, found, tolerance, scale):
        """Where the bytes of a device are no result; none if they are one."""
        expected, found = values(self.ty, self.expected), values(self.ty, found)
        apart = 0.0 if self.ty in INTEGERS else (tolerance + STEPS.get(self.ty, 0.0)) * scale
        size = len(self.expected) // max(len(expected), 1)
        for k, (a, b) in enumerate(zip(expected, found)):
            same = a == b or abs(a - b) <= apart or math.isnan(a) and math.isnan(b)
            if not same and not (self.holes and any(self.holes[k * size : (k + 1) * size])):
                return f"`{self.name}[{k}]` is {b}, was {a}"
        return None


class Printed:
    """The code of a pair for one target."""

    def __init__(self, line, target):
        code = line["targets"][target]
        self.seed, self.place = line["seed"], tuple(line["place"])
        self.batch = f"{self.seed} {self.place[0]}"
        self.tolerance, self.scale = line["tolerance"], line["scale"]
        self.source, self.entry = code["source"], code["entry"]
        self.arrays = [Array.read(array) for array in code["arrays"]]
        self.arguments = [
            argument["array"] if "array" in argument else bytes.fromhex(argument["scalar"])
            for argument in code["arguments"]
        ]
        self.launches = code["launches"]
        for launch in self.launches:
            launch["arguments"] = self.arguments + [bytes.fromhex(scalar) for scalar in launch["more"]]

    def judge(self, found):
        """What is wrong with the bytes of the arrays after the launches; none if nothing is."""
        for array, data in zip(self.arrays, found):
            if array.expected is not None:
                why = array.differ(data, self.tolerance, self.scale)
                if why:
                    return why
        return None


def read(path, target):
    """The pairs of a file that have code for a target."""
    with open(path) as file:
        lines = [json.loads(line) for line in file]
    return [Printed(line, target) for line in lines if target in line["targets"]]


def merged(sources):
    """One source of many: what they share (preamble, functions that the printers add) stands once."""
    seen = {}
    for source in sources:
        for part in source.split("\n\n"):
            seen.setdefault(part)
    return "\n\n".join(seen) + "\n"
