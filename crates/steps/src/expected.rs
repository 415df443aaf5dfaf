//! What has to exist, and else is an internal error that prints the kernel.

use crate::refusal::Refusal;
use kingpost_ir::Kernel;

/// What exists because the kernel is verified, or because the check saw it before.
pub trait Expected<T> {
    /// What is there; `what` names it for whoever reads the report.
    ///
    /// # Errors
    /// [`Refusal::Internal`] with the kernel.
    fn expected(self, what: &str, kernel: &Kernel) -> Result<T, Refusal>;
}

impl<T> Expected<T> for Option<T> {
    fn expected(self, what: &str, kernel: &Kernel) -> Result<T, Refusal> {
        self.ok_or_else(|| Refusal::internal(format!("there is no {what}"), kernel))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bug_prints_the_kernel() {
        let text = "kernel k\narg y: f64[] out\n\ns: y[] = 1.0\n";
        let kernel = kingpost_ir::text::parse(text).expect("a kernel");
        assert_eq!(Some(3).expected("place of `s`", &kernel), Ok(3));
        let missing = None::<u8>.expected("place of `s`", &kernel).map_err(|e| e.to_string());
        let report =
            format!("this is a bug of kingpost, please report it: there is no place of `s`\n{kernel}");
        assert_eq!(missing, Err(report));
    }
}
