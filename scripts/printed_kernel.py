"""A kernel that `kingpost print … --target cuda --plan` printed, compiled and launched by CuPy."""
import math
import re
import tempfile

import cupy as cp
import numpy as np
from cupy_backends.cuda.libs import nvrtc


class PrintedKernel:
    """A kernel of a source, with what its plan says."""

    def __init__(self, path):
        self.name, self.source = path.stem, path.read_text()
        (self.entry,) = self.plan(r"// entry `(\w+)`")
        self.parameters = re.findall(r"//   (\w+): i32 parameter", self.source)
        (self.grid,) = self.plan(r"// grid (.*) of work-groups of")
        self.block = tuple(map(int, self.plan(r"work-groups of (\d+) x (\d+) x (\d+)")))
        self.dynamic = int(self.plan(r"// \d+ bytes of local memory(?:, of which the launch gives (\d+))?")[0] or 0)
        # what one architecture alone has is compiled for that one, which CuPy does not do itself
        own = "a" if "OneComputeCapability" in self.source else ""
        program = nvrtc.createProgram(self.source, f"{self.entry}.cu", [], [])
        nvrtc.compileProgram(program, [f"-arch=sm_{cp.cuda.Device().compute_capability}{own}", "-std=c++17"])
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(nvrtc.getCUBIN(program))
            file.flush()
            self.function = cp.RawModule(path=file.name).get_function(self.entry)
            self.function.num_regs  # loads it while the file is there
        if self.dynamic:
            self.function.max_dynamic_shared_size_bytes = self.dynamic

    def plan(self, pattern):
        """The groups of the first match in the source."""
        return re.search(pattern, self.source).groups()

    def value(self, expression, parameters):
        """Of an expression of the plan."""
        return eval(f"({expression})", {"floor": math.floor, "max": max, "min": min, **parameters})

    def launch(self, parameters, arguments):
        """Launches with the parameters that the plan names, and tensors of PyTorch, arrays of CuPy or numbers."""
        given = (np.uintp(x.data_ptr()) if hasattr(x, "data_ptr") else x for x in arguments)
        numbers = (np.int32(parameters[name]) for name in self.parameters)
        self.function(self.value(self.grid, parameters), self.block, (*numbers, *given), shared_mem=self.dynamic)


def seconds(launch, times):
    """Of one launch, by events around some after a first one."""
    begin, end = cp.cuda.Event(), cp.cuda.Event()
    launch()
    begin.record()
    for _ in range(times):
        launch()
    end.record()
    end.synchronize()
    return cp.cuda.get_elapsed_time(begin, end) / times / 1e3
