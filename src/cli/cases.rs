//! Cases as the command line names them.

use super::failure::Failure;
use purlin::Case;

/// Whether `part` stands in the name of a case as whole components: `laplace`, `3D.P4` and `laplace.3D` stand in
/// `laplace.3D.P4`, `place` and `3D.P` do not. Case does not count.
pub fn is_part(part: &str, name: &str) -> bool {
    let components = |text: &str| text.split('.').map(str::to_lowercase).collect::<Vec<_>>();
    let part = components(part);
    components(name).windows(part.len()).any(|window| window == part)
}

/// The cases of Kulkarni & Klöckner 2025 that any of `parts` stands in; `published` stands for all.
///
/// # Errors
/// A part that stands in none.
pub fn named(parts: &[impl AsRef<str>]) -> Result<Vec<Case>, Failure> {
    let is_meant = |part: &str, case: &Case| part == "published" || is_part(part, &case.to_string());
    let all = Case::all();
    let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
    match parts.iter().find(|part| !all.iter().any(|case| is_meant(part, case))) {
        None => Ok(all.into_iter().filter(|case| parts.iter().any(|part| is_meant(part, case))).collect()),
        Some(part) => Err(Failure::Usage(format!(
            "no case is called `{part}`; cases are called like laplace.3D.P4, and parts such as laplace, 3D.P4 or \
             laplace.3D name all that have them"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(parts: &[&str]) -> Result<Vec<String>, String> {
        let cases = named(parts).map_err(|failure| format!("{failure:?}"))?;
        Ok(cases.iter().map(Case::to_string).collect())
    }

    #[test]
    fn a_part_is_whole_components() {
        for name in ["mass.2D.P1", "elasticity.2D.P5"] {
            assert_eq!(names(&[name]), Ok(vec![name.to_string()]));
        }
        assert_eq!(names(&["laplace.3d", "elasticity.3D.p2"]).map(|n| n.len()), Ok(7));
        let counts =
            ["laplace", "3D.P4", "P4", "2D", "published"].map(|part| names(&[part]).map(|n| n.len()));
        assert_eq!(counts, [14, 5, 10, 40, 70].map(Ok));
    }

    #[test]
    fn a_part_of_no_case_is_refused() {
        for part in ["", ".", "place", "3D.P", "laplace.P4", "laplace.3D.P4.", "laplace.3D.P7", "stokes"] {
            assert!(names(&["mass", part]).is_err_and(|e| e.contains(&format!("`{part}`"))), "{part}");
        }
    }
}
