//! The kernels of the documents Purlin implements, and their recipes.
