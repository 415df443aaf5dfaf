//! Speed of the engine itself.

fn main() {
    divan::main();
}
