//! Kernels: expressions, types, domains, the loop tree, the text format, dependences, statistics and the interpreter.
