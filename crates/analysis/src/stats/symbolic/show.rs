//! Formulas as text: `n*(n - 1)/2`, `[n >= 2]*(n - 2)`.

use super::polynomial::{Monomial, Polynomial, Ratio, gcd};
use super::summation::Pieces;
use kingpost_ir::affine::{Affine, Atom};
use kingpost_ir::kernel::Kernel;
use std::collections::BTreeMap;

/// The sum of polynomials, each after its conditions in brackets.
pub(super) fn pieces(kernel: &Kernel, pieces: &Pieces) -> String {
    let shown = pieces.iter().map(|(conditions, polynomial)| {
        let text = show(kernel, polynomial);
        if conditions.is_empty() {
            return text.to_string();
        }
        let conditions: Vec<_> = conditions.iter().map(|c| kernel.show_constraint(c).to_string()).collect();
        format!("[{}]*{}", conditions.join(" and "), text.as_factor())
    });
    let shown: Vec<_> = shown.collect();
    if shown.is_empty() { "0".to_owned() } else { shown.join(" + ") }
}

/// A product of common factors, a sum and a divisor.
struct Factored {
    /// Coefficient and powers that all terms have.
    common: String,
    sum: String,
    divisor: i128,
}

impl Factored {
    fn as_factor(&self) -> String {
        let text = self.to_string();
        let whole = self.common.is_empty() && self.divisor == 1 && self.sum.contains(' ');
        if whole { format!("({text})") } else { text }
    }
}

impl std::fmt::Display for Factored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let is_sum = self.sum.contains(' ');
        let is_product = !self.common.is_empty() || self.divisor != 1;
        let sum = if is_sum && is_product { format!("({})", self.sum) } else { self.sum.clone() };
        match (self.common.as_str(), sum.as_str()) {
            ("", sum) => f.write_str(sum)?,
            (common, "1") => f.write_str(common)?,
            (common, number) if !number.contains(|c: char| !c.is_ascii_digit()) => {
                write!(f, "{number}*{common}")?;
            }
            (common, sum) => write!(f, "{common}*{sum}")?,
        }
        if self.divisor == 1 { Ok(()) } else { write!(f, "/{}", self.divisor) }
    }
}

fn show(kernel: &Kernel, polynomial: &Polynomial) -> Factored {
    let mut divisor = 1_i128;
    for (_, c) in polynomial.terms() {
        // a divisor that does not fit stays in the coefficients
        divisor = divisor.checked_mul(c.denominator / gcd(divisor, c.denominator)).unwrap_or(divisor);
    }
    let common = common_powers(polynomial);
    let mut terms: Vec<(Monomial, Ratio)> =
        polynomial.terms().map(|(m, c)| (without(m, &common), c)).collect();
    let degree = |m: &Monomial| m.iter().map(|(_, p)| *p).sum::<u32>();
    terms.sort_by(|(a, _), (b, _)| degree(b).cmp(&degree(a)).then_with(|| a.cmp(b)));
    let mut sum = String::new();
    for (monomial, c) in &terms {
        let (up, down) = match c.numerator.checked_mul(divisor / c.denominator) {
            Some(up) if divisor % c.denominator == 0 => (up, 1),
            Some(_) | None => (c.numerator, c.denominator),
        };
        let sign = match (sum.is_empty(), up < 0) {
            (true, true) => "-",
            (true, false) => "",
            (false, true) => " - ",
            (false, false) => " + ",
        };
        sum += sign;
        let powers = product(kernel, monomial);
        let size = up.unsigned_abs();
        sum += &match (size, powers.is_empty()) {
            (_, true) => size.to_string(),
            (1, false) => powers,
            (_, false) => format!("{size}*{powers}"),
        };
        if down != 1 {
            sum += &format!("/{down}");
        }
    }
    Factored { common: product(kernel, &common), sum, divisor }
}

/// The powers that divide every term.
fn common_powers(polynomial: &Polynomial) -> Monomial {
    let mut common: Option<BTreeMap<Atom, u32>> = None;
    for (monomial, _) in polynomial.terms() {
        let own: BTreeMap<Atom, u32> = monomial.iter().cloned().collect();
        common = Some(match common {
            None => own,
            Some(before) => {
                let shared = before.into_iter().filter_map(|(a, p)| Some((a.clone(), p.min(*own.get(&a)?))));
                shared.collect()
            }
        });
    }
    common.into_iter().flatten().collect()
}

fn without(monomial: &Monomial, common: &Monomial) -> Monomial {
    let power = |atom: &Atom| common.iter().find(|(a, _)| a == atom).map_or(0, |(_, p)| *p);
    let rest = monomial.iter().map(|(atom, p)| (atom.clone(), p.saturating_sub(power(atom))));
    rest.filter(|(_, p)| *p > 0).collect()
}

/// `n^2*m`.
fn product(kernel: &Kernel, monomial: &Monomial) -> String {
    let factor = |(atom, power): &(Atom, u32)| {
        let affine = match atom {
            Atom::Iname(i) => Affine::iname(*i),
            Atom::Var(v) => Affine::var(*v),
            Atom::Floor(numerator, d) => numerator.floor_div(*d),
        };
        let text = kernel.show_affine(&affine).to_string();
        if *power == 1 { text } else { format!("{text}^{power}") }
    };
    monomial.iter().map(factor).collect::<Vec<_>>().join("*")
}
