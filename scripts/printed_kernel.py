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
        dynamic = re.search(r"// \d+ bytes of local memory, of which the launch gives (\d+)", self.source)
        shapes = re.findall(r"// .*grid (.*) of work-groups of (\d+) x (\d+) x (\d+)", self.source)
        names = re.findall(r"__global__ void (?:__launch_bounds__\([^)]*\) )?(\w+)\(", self.source)
        texts = re.split(r"__global__ ", self.source)[1:]
        # what one architecture alone has is compiled for that one, which CuPy does not do itself
        own = "a" if "OneComputeCapability" in self.source else ""
        program = nvrtc.createProgram(self.source, f"{self.entry}.cu", [], [])
        nvrtc.compileProgram(program, [f"-arch=sm_{cp.cuda.Device().compute_capability}{own}", "-std=c++17"])
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(nvrtc.getCUBIN(program))
            file.flush()
            module = cp.RawModule(path=file.name)
            functions = [module.get_function(name) for name in names]
            # loads them while the file is there
            self.registers = max(function.num_regs for function in functions)
        self.spilled = max(function.local_size_bytes for function in functions)
        self.launches = []
        for function, text, (grid, *block) in zip(functions, texts, shapes):
            given = int(dynamic[1]) if dynamic and "extern __shared__" in text else 0
            if given:
                function.max_dynamic_shared_size_bytes = given
            self.launches.append((function, grid, tuple(map(int, block)), given))

    def plan(self, pattern):
        """The groups of the first match in the source."""
        return re.search(pattern, self.source).groups()

    def value(self, expression, parameters):
        """Of an expression of the plan."""
        return eval(f"({expression})", {"floor": math.floor, "max": max, "min": min, **parameters})

    def launch(self, parameters, arguments):
        """Launches with the parameters that the plan names, and tensors of PyTorch, arrays of CuPy or numbers."""
        given = [np.uintp(x.data_ptr()) if hasattr(x, "data_ptr") else x for x in arguments]
        numbers = [np.int32(parameters[name]) for name in self.parameters]
        for function, grid, block, dynamic in self.launches:
            function(self.value(grid, parameters), block, (*numbers, *given), shared_mem=dynamic)


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
