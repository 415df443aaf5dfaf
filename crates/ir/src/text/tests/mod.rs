mod errors;
mod errors_declared;
mod printed;
mod random;
mod round_trip;
