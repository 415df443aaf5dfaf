mod errors;
mod printed;
mod random;
mod robust;
mod round_trip;
