//! Turns a kernel into CUDA, OpenCL or C source with a launch plan.
