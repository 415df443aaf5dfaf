mod agreement;
mod kernels;
mod shown;
pub(crate) mod trace;
