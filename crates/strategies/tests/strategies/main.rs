//! Strategies on small kernels and on random forms.

mod mappings;
mod quantities;
mod random_forms;
mod sharing;
mod tiling;
