//! The values of the parameters of a launch: those that are given, those that the lengths of arrays say,
//! and those that are computed from others.

use crate::plan::{ArgKind, HostExpr, HostExprError, LaunchPlan};
use std::collections::{BTreeMap, BTreeSet};

/// Why the parameters of a launch have no values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// What a parameter is computed as has no value.
    #[error("parameter `{name}`: {source}")]
    Value {
        /// The parameter.
        name: String,
        /// Why.
        source: HostExprError,
    },
    /// A parameter was given that is computed, and has another value.
    #[error(
        "parameter `{name}` is given as {found}, and it is computed as `{value}` = {needed}; leave it out"
    )]
    Differs {
        /// The parameter.
        name: String,
        /// What was given.
        found: i64,
        /// What it is computed as.
        value: String,
        /// Its value.
        needed: i64,
    },
    /// No value of the only unknown parameter makes an array as long as it is.
    #[error(
        "`{array}` has {found} elements, and no `{name}` makes that `{len}`; give another array, or `{name}`"
    )]
    Remainder {
        /// The array.
        array: String,
        /// Its elements.
        found: u64,
        /// Its length as the plan states it.
        len: String,
        /// The parameter.
        name: String,
    },
    /// The lengths of two arrays say different things.
    #[error(
        "`{array}` has {found} elements, needed {needed}, as `{name}` = {value} by the length of `{first}`"
    )]
    Lengths {
        /// The array.
        array: String,
        /// Its elements.
        found: u64,
        /// How many it needs.
        needed: i64,
        /// The parameter.
        name: String,
        /// Its value.
        value: i64,
        /// The array that says so.
        first: String,
    },
}

impl LaunchPlan {
    /// The values of the parameters. One that is not given follows from the number of `elements` of an
    /// array whose length has no other unknown; all such arrays have to agree. What stays unknown has no
    /// value in the answer.
    ///
    /// # Errors
    /// [`ParameterError`].
    pub fn parameters(
        &self,
        given: &BTreeMap<String, i64>,
        elements: &dyn Fn(&str) -> Option<u64>,
    ) -> Result<BTreeMap<String, i64>, Box<ParameterError>> {
        let mut all = given.clone();
        self.compute(&mut all)?;
        let is_known = |all: &BTreeMap<String, i64>| {
            self.args.iter().all(|spec| spec.kind != ArgKind::Param || all.contains_key(&spec.name))
        };
        let mut found: Vec<(String, &str)> = Vec::new();
        while !is_known(&all) {
            let Some((name, value, array)) = self.of_lengths(&all, elements)? else { break };
            all.insert(name.clone(), value);
            found.push((name, array));
            self.compute(&mut all)?;
        }
        for (name, first) in &found {
            self.check_lengths(name, first, &all, elements)?;
        }
        Ok(all)
    }

    /// Adds what is computed from what is known.
    fn compute(&self, all: &mut BTreeMap<String, i64>) -> Result<(), ParameterError> {
        for defined in &self.defined {
            let name = || defined.name.clone();
            let needed = match defined.value.eval(all) {
                Ok(value) => value,
                Err(HostExprError::Unbound(_)) => continue,
                Err(source) => return Err(ParameterError::Value { name: name(), source }),
            };
            if let Some(found) = all.insert(name(), needed).filter(|found| *found != needed) {
                let value = defined.value.to_string();
                return Err(ParameterError::Differs { name: name(), found, value, needed });
            }
        }
        Ok(())
    }

    fn lengths<'p>(&'p self, elements: &dyn Fn(&str) -> Option<u64>) -> Vec<(&'p str, &'p HostExpr, u64)> {
        let of = |spec: &'p crate::plan::ArgSpec| match &spec.kind {
            ArgKind::Buffer { len, .. } => Some((spec.name.as_str(), len, elements(&spec.name)?)),
            ArgKind::Param | ArgKind::Scalar | ArgKind::Table(_) | ArgKind::Scratch { .. } => None,
        };
        self.args.iter().filter_map(of).collect()
    }

    /// A parameter that the length of an array determines, its value and the array.
    fn of_lengths(
        &self,
        all: &BTreeMap<String, i64>,
        elements: &dyn Fn(&str) -> Option<u64>,
    ) -> Result<Option<(String, i64, &str)>, ParameterError> {
        for (array, len, found) in self.lengths(elements) {
            let (Some(name), Ok(needed)) = (only_unknown(len, all), i64::try_from(found)) else { continue };
            match solve(len, needed, all) {
                Solution::Value(value) => return Ok(Some((name, value, array))),
                Solution::None => {
                    let (array, len) = (array.to_owned(), len.to_string());
                    return Err(ParameterError::Remainder { array, found, len, name });
                }
                Solution::Any => {}
            }
        }
        Ok(None)
    }

    fn check_lengths(
        &self,
        name: &str,
        first: &str,
        all: &BTreeMap<String, i64>,
        elements: &dyn Fn(&str) -> Option<u64>,
    ) -> Result<(), ParameterError> {
        for (array, len, found) in self.lengths(elements) {
            let (Some(value), true, Ok(needed)) = (all.get(name), len.mentions(&[name]), len.eval(all))
            else {
                continue;
            };
            if u64::try_from(needed) != Ok(found) {
                let [array, name, first] = [array, name, first].map(str::to_owned);
                return Err(ParameterError::Lengths { array, found, needed, name, value: *value, first });
            }
        }
        Ok(())
    }
}

/// The values of an unknown with which an expression has a value.
enum Solution {
    Value(i64),
    None,
    /// Several, or not known which.
    Any,
}

/// The only parameter of a length without a value.
fn only_unknown(len: &HostExpr, known: &BTreeMap<String, i64>) -> Option<String> {
    let mut names = Vec::new();
    len.params(&mut names);
    let unknown: BTreeSet<&str> = names.into_iter().filter(|name| !known.contains_key(*name)).collect();
    match unknown.into_iter().collect::<Vec<_>>()[..] {
        [name] => Some(name.to_owned()),
        _ => None,
    }
}

/// The value of the only unknown with which a length is `value`.
fn solve(len: &HostExpr, value: i64, known: &BTreeMap<String, i64>) -> Solution {
    let split = |a: &HostExpr, b: &HostExpr| match (a.eval(known), b.eval(known)) {
        (Ok(a), Err(HostExprError::Unbound(_))) => Some((a, false)),
        (Err(HostExprError::Unbound(_)), Ok(b)) => Some((b, true)),
        (Ok(_) | Err(_), _) => None,
    };
    match len {
        HostExpr::Param(_) => Solution::Value(value),
        HostExpr::Add(a, b) | HostExpr::Mul(a, b) => {
            let Some((other, is_first)) = split(a, b) else { return Solution::Any };
            let unknown = if is_first { a } else { b };
            if matches!(len, HostExpr::Add(..)) {
                return value.checked_sub(other).map_or(Solution::None, |rest| solve(unknown, rest, known));
            }
            match value.checked_rem(other) {
                Some(0) => solve(unknown, value / other, known),
                Some(_) => Solution::None,
                None => Solution::Any, // a product with nothing is nothing
            }
        }
        HostExpr::Const(_) | HostExpr::FloorDiv(..) | HostExpr::Max(..) | HostExpr::Min(..) => Solution::Any,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::{Options, Target, generate};
    use std::collections::BTreeMap;

    fn parameters(lengths: &[(&str, u64)], given: &[(&str, i64)]) -> Result<BTreeMap<String, i64>, String> {
        let text = "\
kernel rows
param n: i64
param m: i64
param d: i64 = n*m + 1
arg x: f64[n, m] in
arg y: f64[d] inout
arg z: f64[2*n] inout

for i in 0..n
  for j in 0..m
    y[i] += x[i, j] + z[i]
";
        let kernel = kingpost_ir::text::parse(text).unwrap();
        let plan = generate(&kernel, Target::C, &Options::default()).unwrap().plan;
        let given = given.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let elements = |name: &str| lengths.iter().find(|(array, _)| *array == name).map(|(_, n)| *n);
        plan.parameters(&given, &elements).map_err(|e| e.to_string())
    }

    fn values(d: i64, m: i64, n: i64) -> Result<BTreeMap<String, i64>, String> {
        Ok([("d", d), ("m", m), ("n", n)].map(|(name, value)| (name.to_owned(), value)).into())
    }

    #[test]
    fn lengths_say_parameters() {
        assert_eq!(parameters(&[("x", 12)], &[("m", 4)]), values(13, 4, 3));
        assert_eq!(parameters(&[("x", 12), ("z", 6), ("y", 13)], &[]), values(13, 4, 3));
        // nothing says how many columns no rows have
        assert_eq!(parameters(&[("x", 0), ("z", 0)], &[]).unwrap().len(), 1);
        assert_eq!(
            parameters(&[("x", 13)], &[("m", 4)]).unwrap_err(),
            "`x` has 13 elements, and no `n` makes that `n*m`; give another array, or `n`"
        );
        assert_eq!(
            parameters(&[("x", 12), ("z", 8)], &[("m", 4)]).unwrap_err(),
            "`z` has 8 elements, needed 6, as `n` = 3 by the length of `x`"
        );
        // what is given stays, and longer arrays are the caller's
        assert_eq!(parameters(&[("x", 20), ("z", 8)], &[("m", 4), ("n", 3)]), values(13, 4, 3));
    }

    #[test]
    fn computed_values_are_checked() {
        assert_eq!(parameters(&[], &[("n", 3), ("m", 4), ("d", 13)]), values(13, 4, 3));
        assert_eq!(
            parameters(&[], &[("n", 3), ("m", 4), ("d", 12)]).unwrap_err(),
            "parameter `d` is given as 12, and it is computed as `(n*m + 1)` = 13; leave it out"
        );
        let error = parameters(&[], &[("n", i64::MAX), ("m", 4)]).unwrap_err();
        assert_eq!(
            error,
            "parameter `d`: `n*m` does not fit 64 bits with m = 4, n = 9223372036854775807; use smaller sizes"
        );
    }
}
