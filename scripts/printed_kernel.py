"""A kernel that `kingpost print … --target cuda --plan` printed, compiled and launched by CuPy."""
import ctypes
import math
import re
import tempfile

import cupy as cp
import numpy as np
from cupy_backends.cuda.libs import nvrtc


# `CUtensorMap` of the driver, and numbers of `CUtensorMapDataType` with the bytes of an element
MAP = np.dtype([("words", np.uint64, 16)])
ELEMENTS = {"f16": (6, 2), "f32": (7, 4), "f64": (8, 8), "bf16": (9, 2)}


class TensorMap:
    """The map of a tensor that a plan asks for."""

    TEXT = re.compile(
        r"//   \w+: map of (\w+) with extents \[(.*)\], strides \[(.*)\], boxes of ([\d x]+)(, rows swizzled)?"
    )

    def __init__(self, found, types):
        self.array, extents, strides, sides, swizzled = found
        # the driver takes the innermost axis first
        self.extents, self.strides = extents.split(", ")[::-1], strides.split(", ")[::-1]
        self.sides = [int(side) for side in sides.split(" x ")][::-1]
        self.type, self.is_swizzled = types[self.array], bool(swizzled)

    def encoded(self, address, parameters):
        """As the driver's `cuTensorMapEncodeTiled` makes it of an array."""
        axes, (number, bytes_) = len(self.sides), ELEMENTS[self.type]
        extents = [eval(extent, {}, parameters) for extent in self.extents]
        strides = [bytes_ * eval(stride, {}, parameters) for stride in self.strides]
        room = ctypes.create_string_buffer(2 * MAP.itemsize)
        to = -(-ctypes.addressof(room) // MAP.itemsize) * MAP.itemsize
        result = ctypes.CDLL("libcuda.so.1").cuTensorMapEncodeTiled(
            ctypes.c_void_p(to),
            number,
            axes,
            ctypes.c_void_p(address),
            (ctypes.c_uint64 * axes)(*extents),
            (ctypes.c_uint64 * axes)(*strides[1:]),
            (ctypes.c_uint32 * axes)(*self.sides),
            (ctypes.c_uint32 * axes)(*[1] * axes),
            0,
            3 if self.is_swizzled else 0,  # rows of 128 bytes
            3,  # 256 bytes at a time into the second cache
            0,
        )
        if result:
            raise RuntimeError(f"cuTensorMapEncodeTiled returns {result}")
        return np.frombuffer(ctypes.string_at(to, MAP.itemsize), MAP).copy()


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
        self.buffers = dict(re.findall(r"//   (\w+): (\w+) buffer", self.source))
        self.maps = [TensorMap(found, self.buffers) for found in TensorMap.TEXT.findall(self.source)]
        self.encoded, self.grids = {}, {}
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
        given = tuple(np.uintp(x.data_ptr()) if hasattr(x, "data_ptr") else x for x in arguments)
        numbers = tuple(np.int32(parameters[name]) for name in self.parameters)
        maps = self.encoded_maps(numbers, given, parameters) if self.maps else ()
        if numbers not in self.grids:
            self.grids[numbers] = [self.value(grid, parameters) for _, grid, *_ in self.launches]
        for (function, _, block, dynamic), grid in zip(self.launches, self.grids[numbers]):
            function(grid, block, (*numbers, *given, *maps), shared_mem=dynamic)

    def encoded_maps(self, numbers, pointers, parameters):
        """The maps of tensors of PyTorch, encoded once for the same ones."""
        if (numbers, pointers) not in self.encoded:
            addresses = dict(zip(self.buffers, map(int, pointers)))
            maps = tuple(each.encoded(addresses[each.array], parameters) for each in self.maps)
            self.encoded[numbers, pointers] = maps
        return self.encoded[numbers, pointers]


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
