//! Complex numbers: how they are computed with, and functions of them with NumPy's branch cuts.
//!
//! Sums, products and quotients are the operations on reals that the code has, each rounded to the type
//! of the parts, so that a program without fused products has the same bits everywhere.

use super::machine::{Eval, Machine};
use super::node::{Complex, ComplexFn, ComplexOp, Part, RealOp};
use super::observe::Observer;
use super::rounding;
use super::store::Pair;
use kingpost_ir::expr::UpdateOp;

impl<'p, O: Observer> Machine<'p, O> {
    pub(super) fn complex(&mut self, e: &'p Complex) -> Eval<Pair> {
        match e {
            Complex::Load(place) => {
                let at = self.offset(place)?;
                self.load_complex(place.var, at)
            }
            Complex::Op { op, single, tally, times, reals, args } => {
                let mut x = [0.0; 2];
                for (slot, e) in x.iter_mut().zip(reals) {
                    *slot = self.real(e)?;
                }
                let mut z = [[0.0; 2]; 2];
                for (slot, e) in z.iter_mut().zip(args) {
                    *slot = self.complex(e)?;
                }
                self.ops[tally.index()] += times;
                Ok(self.apply(*op, *single, x, z))
            }
            Complex::Select(c, a, b) => {
                if self.truth(c)? {
                    self.complex(a)
                } else {
                    self.complex(b)
                }
            }
            Complex::Reduce { op, inames, single, tally, body } => {
                let mut sum = [op.real_of_nothing(), 0.0];
                self.reduce(inames, &mut |this| {
                    let value = this.complex(body)?;
                    this.ops[tally.index()] += 1;
                    sum = this.combined_complex(*op, *single, sum, value);
                    Ok(())
                })?;
                Ok(sum)
            }
        }
    }

    /// A part or the absolute value of a complex number.
    pub(super) fn part(&mut self, part: Part, single: bool, of: &'p Complex) -> Eval<f64> {
        let [re, im] = self.complex(of)?;
        Ok(match part {
            Part::Real => re,
            Part::Imaginary => im,
            Part::Size => {
                let value = re.hypot(im);
                let value = if single { f64::from(value as f32) } else { value };
                self.settled(single, value, |v| v.fract() == 0.0)
            }
        })
    }

    /// `a op b` as an update or a reduction joins them; complex numbers have no order.
    pub(super) fn combined_complex(&mut self, op: UpdateOp, single: bool, a: Pair, b: Pair) -> Pair {
        let op = if op == UpdateOp::Mul { ComplexOp::Mul } else { ComplexOp::Add };
        self.apply(op, single, [0.0; 2], [a, b])
    }

    /// An operation on reals, settled.
    fn arith(&mut self, op: RealOp, single: bool, a: f64, b: f64) -> f64 {
        let value = match op {
            RealOp::Add => a + b,
            RealOp::Sub => a - b,
            RealOp::Mul => a * b,
            RealOp::Div | RealOp::Mod | RealOp::Min | RealOp::Max => a / b,
        };
        let value = if single { f64::from(value as f32) } else { value };
        self.settled(single, value, |v| rounding::exact(op, a, b, v))
    }

    fn apply(&mut self, op: ComplexOp, single: bool, [x, y]: [f64; 2], [a, b]: [Pair; 2]) -> Pair {
        let mut of = |op, a, b| self.arith(op, single, a, b);
        match op {
            ComplexOp::Of => [x, y],
            ComplexOp::Round => a.map(|part| of(RealOp::Mul, part, 1.0)),
            ComplexOp::Neg => a.map(|part| -part),
            ComplexOp::Conj => [a[0], -a[1]],
            ComplexOp::Add => [of(RealOp::Add, a[0], b[0]), of(RealOp::Add, a[1], b[1])],
            ComplexOp::Sub => [of(RealOp::Sub, a[0], b[0]), of(RealOp::Sub, a[1], b[1])],
            ComplexOp::Mul => self.product(single, a, b),
            ComplexOp::Div => self.quotient(single, a, b),
            ComplexOp::Plus => [of(RealOp::Add, a[0], x), a[1]],
            ComplexOp::Minus => [of(RealOp::Sub, a[0], x), a[1]],
            ComplexOp::From => [of(RealOp::Sub, x, a[0]), -a[1]],
            ComplexOp::Scale => a.map(|part| of(RealOp::Mul, part, x)),
            ComplexOp::Shrink => a.map(|part| of(RealOp::Div, part, x)),
            ComplexOp::Function(f) => function(f, a, b).map(|part| {
                let part = if single { f64::from(part as f32) } else { part };
                self.settled(single, part, |v| v.fract() == 0.0)
            }),
        }
    }

    fn product(&mut self, single: bool, [a, b]: Pair, [c, d]: Pair) -> Pair {
        let mut of = |op, a, b| self.arith(op, single, a, b);
        let [ac, bd] = [of(RealOp::Mul, a, c), of(RealOp::Mul, b, d)];
        let [ad, bc] = [of(RealOp::Mul, a, d), of(RealOp::Mul, b, c)];
        [of(RealOp::Sub, ac, bd), of(RealOp::Add, ad, bc)]
    }

    /// By the larger part of the divisor, so that no square overflows (Smith 1962), as NumPy has it.
    fn quotient(&mut self, single: bool, [a, b]: Pair, [c, d]: Pair) -> Pair {
        let mut of = |op, a, b| self.arith(op, single, a, b);
        if c.abs() >= d.abs() {
            if c == 0.0 && d == 0.0 {
                return [of(RealOp::Div, a, c.abs()), of(RealOp::Div, b, c.abs())];
            }
            let ratio = of(RealOp::Div, d, c);
            let dr = of(RealOp::Mul, d, ratio);
            let scale = of(RealOp::Add, c, dr);
            let [br, ar] = [of(RealOp::Mul, b, ratio), of(RealOp::Mul, a, ratio)];
            let [re, im] = [of(RealOp::Add, a, br), of(RealOp::Sub, b, ar)];
            return [of(RealOp::Div, re, scale), of(RealOp::Div, im, scale)];
        }
        let ratio = of(RealOp::Div, c, d);
        let cr = of(RealOp::Mul, c, ratio);
        let scale = of(RealOp::Add, cr, d);
        let [ar, br] = [of(RealOp::Mul, a, ratio), of(RealOp::Mul, b, ratio)];
        let [re, im] = [of(RealOp::Add, ar, b), of(RealOp::Sub, br, a)];
        [of(RealOp::Div, re, scale), of(RealOp::Div, im, scale)]
    }
}

/// A function of complex numbers in double precision.
fn function(f: ComplexFn, z: Pair, w: Pair) -> Pair {
    let [re, im] = z;
    match f {
        ComplexFn::Exp => exp(z),
        ComplexFn::Log => log(z),
        ComplexFn::Sqrt => sqrt(z),
        ComplexFn::Sin => [re.sin() * im.cosh(), re.cos() * im.sinh()],
        ComplexFn::Cos => [re.cos() * im.cosh(), -(re.sin() * im.sinh())],
        ComplexFn::Pow => pow(z, w),
    }
}

fn exp([re, im]: Pair) -> Pair {
    let size = re.exp();
    if im == 0.0 {
        return [size, im];
    }
    if size == 0.0 && !im.is_finite() { [0.0, 0.0] } else { [size * im.cos(), size * im.sin()] }
}

/// The cut is the negative real axis, from which the sign of the imaginary part tells the sides.
fn log([re, im]: Pair) -> Pair {
    [re.hypot(im).ln(), im.atan2(re)]
}

/// Kahan 1987: the cut is the negative real axis, and the real part is not negative.
fn sqrt([re, im]: Pair) -> Pair {
    if re == 0.0 && im == 0.0 {
        return [0.0, im];
    }
    if im.is_infinite() {
        return [f64::INFINITY, im];
    }
    if re.is_infinite() {
        let nothing = im * 0.0; // or nan
        return if re < 0.0 { [nothing.abs(), re.copysign(im)] } else { [re, nothing.copysign(im)] };
    }
    let root = 2.0 * (re.abs() * 0.125 + (re * 0.125).hypot(im * 0.125)).sqrt();
    if re >= 0.0 { [root, im / (2.0 * root)] } else { [im.abs() / (2.0 * root), root.copysign(im)] }
}

/// By products where the exponent is a small whole number, else by the logarithm.
fn pow(z: Pair, [re, im]: Pair) -> Pair {
    let multiply = |[a, b]: Pair, [c, d]: Pair| [a * c - b * d, a * d + b * c];
    if im == 0.0 && re.fract() == 0.0 && re.abs() <= 100.0 {
        let (mut result, mut square, mut left) = ([1.0, 0.0], z, re.abs() as u32);
        while left > 0 {
            if left % 2 == 1 {
                result = multiply(result, square);
            }
            square = multiply(square, square);
            left /= 2;
        }
        let [a, b] = result;
        let size = a * a + b * b;
        return if re < 0.0 { [a / size, -b / size] } else { result };
    }
    if z == [0.0, 0.0] {
        return if re > 0.0 { [0.0, 0.0] } else { [f64::NAN; 2] };
    }
    exp(multiply([re, im], log(z)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PI: f64 = std::f64::consts::PI;

    #[test]
    fn functions_have_the_branch_cuts_of_numpy() {
        assert_eq!(sqrt([-4.0, 0.0]), [0.0, 2.0]);
        assert_eq!(sqrt([-4.0, -0.0]), [0.0, -2.0]);
        assert_eq!(sqrt([3.0, 4.0]), [2.0, 1.0]);
        assert_eq!(sqrt([f64::NEG_INFINITY, 1.0]), [0.0, f64::INFINITY]);
        assert!(sqrt([1.5e308, 1.5e308]).iter().all(|x| x.is_finite()));
        assert_eq!(log([-1.0, 0.0]), [0.0, PI]);
        assert_eq!(log([-1.0, -0.0]), [0.0, -PI]);
        assert_eq!(exp([f64::NEG_INFINITY, f64::INFINITY])[0], 0.0);
        assert_eq!(pow([0.0, 1.0], [3.0, 0.0]), [0.0, -1.0]);
        assert_eq!(pow([0.0, 2.0], [-2.0, 0.0]), [-0.25, -0.0]);
        assert_eq!(pow([0.0, 0.0], [0.5, 0.0]), [0.0, 0.0]);
        // numpy.power(-1+0j, 0.5), numpy.sin(1+2j), numpy.cos(1+2j), numpy.power(1+2j, 0.3-1j)
        let near = |a: Pair, b: Pair| (a[0] - b[0]).hypot(a[1] - b[1]) < 1e-14;
        assert!(near(pow([-1.0, 0.0], [0.5, 0.0]), [0.0, 1.0]));
        assert!(near(
            function(ComplexFn::Sin, [1.0, 2.0], [0.0; 2]),
            [3.165778513216168, 1.9596010414216063]
        ));
        assert!(near(function(ComplexFn::Cos, [1.0, 2.0], [0.0; 2]), [2.0327230070196656, -3.0518977991518]));
    }
}
