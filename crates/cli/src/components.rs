//! Names that are made of components, such as `laplace.3D.P4`.

/// Whether `part` stands in a name as whole components: `laplace`, `3D.P4` and `laplace.3D` stand
/// in `laplace.3D.P4`, `place` and `3D.P` do not. Case does not count.
#[must_use]
pub fn is_part(part: &str, name: &str) -> bool {
    let components = |text: &str| text.split('.').map(str::to_lowercase).collect::<Vec<_>>();
    let part = components(part);
    components(name).windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_whole_components() {
        let name = "laplace.3D.P4";
        for part in [name, "laplace", "3d.p4", "laplace.3D", "P4"] {
            assert!(is_part(part, name), "{part}");
        }
        for part in ["", ".", "place", "3D.P", "laplace.P4", "laplace.3D.P4."] {
            assert!(!is_part(part, name), "{part}");
        }
    }
}
