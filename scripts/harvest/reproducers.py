"""A fault on its own: a source whose head says what it is called with.

    // argument x: f64 = 0.5, nan
    // launch sample: grid 1 1 1, work-group 4 1 1

Arguments belong to the parameters of their names, so that a reducer may leave out parameters.
"""
import math
import re
import struct
import tempfile
from pathlib import Path

import judging
import pairs

ARGUMENT = re.compile(r"^// argument (\w+): (\w+)(\*?) = (.*)$", re.M)
LAUNCH = re.compile(r"^// launch (\w+): grid (\d+) (\d+) (\d+), work-group (\d+) (\d+) (\d+)$", re.M)


def packed(ty, numbers):
    """The bytes of numbers."""
    if ty == "bf16":
        words = struct.unpack(f"<{len(numbers)}I", struct.pack(f"<{len(numbers)}f", *map(float, numbers)))
        return struct.pack(f"<{len(words)}H", *(word >> 16 for word in words))
    if ty in pairs.REALS:
        return struct.pack(f"<{len(numbers)}{pairs.REALS[ty]}", *map(float, numbers))
    return struct.pack(f"<{len(numbers)}{pairs.INTEGERS[ty]}", *map(int, numbers))


def parameters(source, name):
    """The names of a function's parameters, in order, and its parameters as text."""
    for found in re.finditer(rf"\b{name}\s*\(", source):
        depth, end = 1, found.end()
        while depth and end < len(source):
            depth += {"(": 1, ")": -1}.get(source[end], 0)
            end += 1
        if re.match(r"\s*\{", source[end:]):
            texts = [text.strip() for text in source[found.end() : end - 1].split(",") if text.strip()]
            return [re.findall(r"\w+", text)[-1] for text in texts], texts
    raise ValueError(f"there is no function `{name}`")


class Reproducer:
    """A source with its arguments and launches."""

    def __init__(self, text):
        self.given = {name: (ty, star, numbers.split(", ")) for name, ty, star, numbers in ARGUMENT.findall(text)}
        self.found_launches = [(name, *map(int, sizes)) for name, *sizes in LAUNCH.findall(text)]
        self.source = "\n".join(line for line in text.splitlines() if not line.startswith("//"))

    @classmethod
    def of(cls, printed):
        """A reproducer of a pair, with names of its parameters instead of its arguments."""
        source = re.sub(r"[ \t]*//[^\n]*", "", printed.source)
        lines = []
        for launch in printed.launches:
            if launch["more"]:
                raise ValueError("launches that a loop of the host repeats")
            names, texts = parameters(source, launch["name"])
            for name, text, argument in zip(names, texts, printed.arguments):
                if isinstance(argument, bytes):
                    kind = re.search(r"double|float|int64_t|long", text)
                    ty = {"double": "f64", "float": "f32"}.get(kind and kind[0], f"i{8 * len(argument)}")
                    star, data = "", argument
                else:
                    ty, star, data = printed.arrays[argument].ty, "*", printed.arrays[argument].first
                numbers = ", ".join(map(repr, pairs.values(ty, data)))
                lines.append(f"// argument {name}: {ty}{star} = {numbers}")
            grid, block = (" ".join(map(str, launch[sizes])) for sizes in ("grid", "block"))
            lines.append(f"// launch {launch['name']}: grid {grid}, work-group {block}")
        if printed.source.startswith("#include"):
            # what Kingpost's library calls is not the reproducer's
            source = re.sub(r"\nvoid \w+_launch\(.*", "", source, flags=re.S).replace("static void", "void")
        return cls("\n".join(dict.fromkeys(lines)) + "\n" + source)

    def text(self):
        """As a file has it, without arguments that nothing takes."""
        taken = {name for launch in self.found_launches for name in parameters(self.source, launch[0])[0]}
        lines = [
            f"// argument {name}: {ty}{star} = {', '.join(numbers)}"
            for name, (ty, star, numbers) in self.given.items()
            if name in taken
        ]
        lines += [
            "// launch {}: grid {} {} {}, work-group {} {} {}".format(*launch) for launch in self.found_launches
        ]
        return "\n".join(lines) + "\n" + re.sub(r"\n\s*\n+", "\n\n", self.source).strip() + "\n"

    def results(self, compiler):
        """The arrays after the launches, by name; or why there are none."""
        launches, source = [], self.source
        arrays, order = [], {}
        for name, (ty, star, numbers) in self.given.items():
            if star:
                order[name] = len(arrays)
                arrays.append(pairs.Array(name, ty, packed(ty, numbers), None, None))
        for name, *sizes in self.found_launches:
            names, texts = parameters(self.source, name)
            scalar = lambda p: packed(self.given[p][0], self.given[p][2])  # noqa: E731
            arguments = [order[p] if p in order else scalar(p) for p in names]
            sizes = {"grid": sizes[:3], "block": sizes[3:], "local": 0}
            launches.append({"name": name, "arguments": arguments, **sizes})
            if compiler.target == "c":
                types = [re.sub(r"\w+\s*$", "", text) for text in texts]
                call = ", ".join(f"*({ty}*)args[{k}]" for k, ty in enumerate(types))
                source += f"\nvoid {name}_launch(void **args, const void *grid) {{ {name}({call}); }}\n"
        with tempfile.TemporaryDirectory(prefix="harvest-") as folder:
            built = compiler.build(source, Path(folder), "reproducer")
            run = Results(arrays, launches)
            answers, end = judging.in_process(compiler, built, [run])
        last = answers[-1] if answers else ["died", end]
        if last[0] != "wrong":
            return end or last[1] or last[0]
        return {a.name: pairs.values(a.ty, bytes.fromhex(b)) for a, b in zip(arrays, last[1].split())}


class Results:
    """What a device runs, whose results are told instead of judged."""

    def __init__(self, arrays, launches):
        self.arrays, self.launches = arrays, launches

    @staticmethod
    def judge(found):
        """All bytes."""
        return " ".join(data.hex() for data in found) or "-"


def differ(a, b, tolerance):
    """Where results differ: a name, an index and both numbers; none if nowhere."""
    for name in a:
        scale = max([1.0, *(abs(x) for x in a[name] if math.isfinite(x))])
        for k, (x, y) in enumerate(zip(a[name], b[name])):
            apart = tolerance * scale if isinstance(x, float) else 0
            if not (x == y or abs(x - y) <= apart or math.isnan(x) and math.isnan(y)):
                return f"{name}[{k}] is {y!r}, with the others {x!r}"
    return None


def check(text, compiler, references, tolerance=1e-3):
    """What a compiler makes of a reproducer that references agree on; none if that is right, or they do not."""
    try:
        this = Reproducer(text)
        right = [this.results(reference) for reference in references]
        if any(isinstance(results, str) for results in right):
            return None
        if any(differ(right[0], results, tolerance / 100) for results in right[1:]):
            return None
        found = this.results(compiler)
    except (judging.BuildError, KeyError, ValueError, struct.error):
        return None
    if isinstance(found, str):
        return found
    return differ(right[0], found, tolerance)
