//! Strategies on small kernels and on random forms.

mod mappings;
mod random_forms;
mod tiling;
