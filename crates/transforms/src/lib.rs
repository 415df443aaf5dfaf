//! Primitives that transform kernels, each with its proof, the strategies composed of them, and recipes.
