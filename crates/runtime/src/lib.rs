//! Compiles, allocates, launches and times generated programs on CUDA, OpenCL and host C.
