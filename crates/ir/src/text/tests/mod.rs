mod errors;
mod errors_declared;
mod formatted;
mod printed;
mod random;
mod round_trip;
