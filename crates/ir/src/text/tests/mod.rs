mod errors;
mod errors_declared;
mod printed;
mod random;
mod robust;
mod round_trip;
