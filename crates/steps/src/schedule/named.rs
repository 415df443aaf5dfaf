//! Names for what a step makes: a stem as it is where it is free, else with a number after it.

use super::Schedule;

impl Schedule {
    /// A free name: `stem`, or with a number after it.
    pub fn fresh(&self, stem: &str) -> String {
        self.kernel().fresh_name(stem)
    }

    /// The first of `stem`, `stem_1`, `stem_2`, … that is free and `suits`.
    fn fresh_that(&self, stem: &str, suits: impl Fn(&str) -> bool) -> String {
        let mut name = stem.to_owned();
        let mut k = 0;
        while self.fresh(&name) != name || !suits(&name) {
            k += 1;
            name = format!("{stem}_{k}");
        }
        name
    }

    /// A free name of which `derived` are free, too.
    pub fn fresh_with(&self, stem: &str, derived: impl Fn(&str) -> Vec<String>) -> String {
        self.fresh_that(stem, |name| derived(name).iter().all(|d| self.fresh(d) == *d))
    }

    /// Different free names for several things at once, each from its stem.
    pub fn fresh_names(&self, stems: &[&str]) -> Vec<String> {
        stems.iter().fold(Vec::new(), |mut names: Vec<String>, stem| {
            let name = self.fresh_that(stem, |name| names.iter().all(|n| n != name));
            names.push(name);
            names
        })
    }
}
