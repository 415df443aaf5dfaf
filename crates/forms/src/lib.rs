//! Variational forms, elements, quadrature, meshes, numberings, and their lowering to kernels.
