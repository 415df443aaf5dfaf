"""Runs compiled pairs: in this process, which a wrong one may take down."""
import ctypes
import os
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_void_p, create_string_buffer
from pathlib import Path


def pointers(values):
    """The addresses of values that stay where they are."""
    return (c_void_p * len(values))(*(ctypes.addressof(value) for value in values))


def values_of(launch, places):
    """The arguments of a launch: scalars, and where arrays lie."""
    scalar = lambda data: create_string_buffer(data, len(data))  # noqa: E731
    return [scalar(it) if isinstance(it, bytes) else places[it] for it in launch["arguments"]]


class Host:
    """Shared objects of C, or of HIP's text on a host."""

    def __init__(self, built, compiler):
        self.library = ctypes.CDLL(str(built))

    def run(self, printed):
        """The bytes of the arrays after the launches."""
        arrays = [create_string_buffer(array.first, max(len(array.first), 1)) for array in printed.arrays]
        places = [c_void_p(ctypes.addressof(array)) for array in arrays]
        for launch in printed.launches:
            values = values_of(launch, places)
            # in C work-items are loops
            sizes = (ctypes.c_int64 * 6)(*launch["grid"], *launch["block"])
            self.library[f"{launch['name']}_launch"](pointers(values), sizes)
        return [array.raw[: len(of.first)] for array, of in zip(arrays, printed.arrays)]


class Cuda:
    """Machine code on a card."""

    def __init__(self, built, compiler):
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.check("cuInit", 0)
        device, context, self.module = c_int(), c_void_p(), c_void_p()
        self.check("cuDeviceGet", byref(device), 0)
        self.check("cuDevicePrimaryCtxRetain", byref(context), device)
        self.check("cuCtxSetCurrent", context)
        self.check("cuModuleLoadData", byref(self.module), Path(built).read_bytes())

    def check(self, name, *arguments):
        """Calls the driver."""
        code = getattr(self.driver, name)(*arguments)
        if code:
            raise RuntimeError(f"{name} answers {code}")

    def run(self, printed):
        arrays = []
        for array in printed.arrays:
            place = ctypes.c_uint64()
            self.check("cuMemAlloc_v2", byref(place), c_size_t(max(len(array.first), 1)))
            if array.first:
                self.check("cuMemcpyHtoD_v2", place, array.first, c_size_t(len(array.first)))
            arrays.append(place)
        for launch in filter(lambda launch: all(launch["grid"]), printed.launches):
            function = c_void_p()
            self.check("cuModuleGetFunction", byref(function), self.module, launch["name"].encode())
            if launch["local"] > 48 << 10:
                self.check("cuFuncSetAttribute", function, 8, launch["local"])
            values = values_of(launch, arrays)
            sizes = map(c_uint, (*launch["grid"], *launch["block"], launch["local"]))
            self.check("cuLaunchKernel", function, *sizes, None, pointers(values), None)
        self.check("cuCtxSynchronize")
        found = []
        for place, array in zip(arrays, printed.arrays):
            data = create_string_buffer(max(len(array.first), 1))
            if array.first:
                self.check("cuMemcpyDtoH_v2", data, place, c_size_t(len(array.first)))
            found.append(data.raw[: len(array.first)])
            self.check("cuMemFree_v2", place)
        return found


class OpenCl:
    """Sources on the first device that the environment of a compiler has."""

    def __init__(self, built, compiler):
        os.environ.update(compiler.environment)
        self.cl = ctypes.CDLL("libOpenCL.so.1")
        for name in "Context CommandQueue ProgramWithSource Kernel Buffer".split():
            getattr(self.cl, f"clCreate{name}").restype = c_void_p
        platform, device, code = c_void_p(), c_void_p(), c_int()
        self.check(self.cl.clGetPlatformIDs(1, byref(platform), None), "clGetPlatformIDs")
        every = ctypes.c_uint64(0xFFFFFFFF)
        self.check(self.cl.clGetDeviceIDs(platform, every, 1, byref(device), None), "clGetDeviceIDs")
        self.context = c_void_p(self.cl.clCreateContext(None, 1, byref(device), None, None, byref(code)))
        self.check(code.value, "clCreateContext")
        self.queue = c_void_p(
            self.cl.clCreateCommandQueue(self.context, device, ctypes.c_uint64(0), byref(code))
        )
        self.check(code.value, "clCreateCommandQueue")
        text = c_char_p(Path(built).read_bytes())
        program = self.cl.clCreateProgramWithSource(self.context, 1, byref(text), None, byref(code))
        self.program = c_void_p(program)
        options = f"-cl-std=CL1.2 {compiler.options}".encode()
        answer = self.cl.clBuildProgram(self.program, 1, byref(device), options, None, None)
        if answer:
            log = create_string_buffer(1 << 16)
            self.cl.clGetProgramBuildInfo(self.program, device, 0x1183, c_size_t(len(log)), log, None)
            raise RuntimeError(f"clBuildProgram answers {answer}: {log.value.decode(errors='replace')[:300]}")

    @staticmethod
    def check(code, what):
        """Refuses an error."""
        if code:
            raise RuntimeError(f"{what} answers {code}")

    def run(self, printed):
        arrays, code = [], c_int()
        for array in printed.arrays:
            # read and written, with a copy of what it holds
            first = create_string_buffer(array.first, max(len(array.first), 1))
            flags, size = ctypes.c_uint64(1 | 32), c_size_t(len(first))
            arrays.append(c_void_p(self.cl.clCreateBuffer(self.context, flags, size, first, byref(code))))
            self.check(code.value, "clCreateBuffer")
        for launch in filter(lambda launch: all(launch["grid"]), printed.launches):
            name = launch["name"].encode()
            kernel = c_void_p(self.cl.clCreateKernel(self.program, name, byref(code)))
            self.check(code.value, "clCreateKernel")
            for k, value in enumerate(values_of(launch, arrays)):
                size = c_size_t(ctypes.sizeof(value))
                self.check(self.cl.clSetKernelArg(kernel, k, size, byref(value)), "clSetKernelArg")
            block = (c_size_t * 3)(*launch["block"])
            sizes = (c_size_t * 3)(*(a * b for a, b in zip(launch["grid"], launch["block"])))
            launched = self.cl.clEnqueueNDRangeKernel(
                self.queue, kernel, 3, None, sizes, block, 0, None, None
            )
            self.check(launched, "clEnqueueNDRangeKernel")
            self.check(self.cl.clFinish(self.queue), "clFinish")
            self.cl.clReleaseKernel(kernel)
        found = []
        for place, array in zip(arrays, printed.arrays):
            data = create_string_buffer(max(len(array.first), 1))
            size = c_size_t(len(data))
            read = self.cl.clEnqueueReadBuffer(self.queue, place, 1, c_size_t(0), size, data, 0, None, None)
            self.check(read, "clEnqueueReadBuffer")
            found.append(data.raw[: len(array.first)])
            self.cl.clReleaseMemObject(place)
        return found


DEVICES = {"c": Host, "hip": Host, "cuda": Cuda, "opencl": OpenCl}
