//! Functions on double-single numbers in source.
//!
//! Compilers may fuse no sum with a product here: CUDA has functions for operations that are
//! rounded one by one, and elsewhere contraction is off for the whole program.

use crate::double_single::{HELD, PairOp};
use crate::target::TargetDescription;
use kingpost_ir::{MathFn, ScalarType};

/// Operations on `f32` that are rounded one by one.
struct Rounded<'t>(&'t TargetDescription);

impl Rounded<'_> {
    fn operation(&self, k: usize, operator: char, a: &str, b: &str) -> String {
        match self.0.words.rounded {
            Some(functions) => format!("{}({a}, {b})", functions[k]),
            None => format!("({a} {operator} {b})"),
        }
    }

    fn add(&self, a: &str, b: &str) -> String {
        self.operation(0, '+', a, b)
    }

    fn sub(&self, a: &str, b: &str) -> String {
        self.operation(1, '-', a, b)
    }

    fn mul(&self, a: &str, b: &str) -> String {
        self.operation(2, '*', a, b)
    }

    fn fma(&self, a: &str, b: &str, c: &str) -> String {
        format!("{}({a}, {b}, {c})", self.0.function(MathFn::Fma, ScalarType::F32))
    }

    /// Statements that make `p` the product of two numbers, and `e` what that leaves out.
    fn product(&self, (a, b): (&str, &str), terms: &[(&str, &str)]) -> String {
        let (p, e) = (self.mul(a, b), self.fma(a, b, "-p"));
        let mut text = format!("    const float p = {p};\n    float e = {e};\n");
        for (a, b) in terms {
            text += &format!("    e = {};\n", self.fma(a, b, "e"));
        }
        text
    }
}

impl PairOp {
    /// The function.
    pub(crate) fn source(self, target: &TargetDescription) -> String {
        let t = target.ty(HELD);
        let result = self.value().map_or("int", |value| target.ty(value));
        let params = match self {
            Self::Make | Self::TwoSum | Self::FastTwoSum => "const float x, const float y".to_owned(),
            Self::Split => "const double x".to_owned(),
            Self::Widen => "const float x".to_owned(),
            Self::Join | Self::High | Self::Neg | Self::Abs | Self::Sqrt => format!("const {t} z"),
            Self::Scale => format!("const {t} z, const float x"),
            Self::AddProduct => format!("const {t} a, const {t} z, const {t} w"),
            Self::Add
            | Self::Mul
            | Self::Div
            | Self::Min
            | Self::Max
            | Self::Less
            | Self::LessEqual
            | Self::Equal => {
                format!("const {t} z, const {t} w")
            }
        };
        let body = self.body(target);
        format!("{} {result} {}({params})\n{{\n{body}}}\n", target.words.inline, self.name())
    }

    fn body(self, target: &TargetDescription) -> String {
        let t = target.ty(HELD);
        let r = Rounded(target);
        let pair = |high: &str, low: &str| {
            format!("    {t} v;\n    v.x = {high};\n    v.y = {low};\n    return v;\n")
        };
        let joined =
            |high: &str, low: &str| format!("    return {}({high}, {low});\n", Self::FastTwoSum.name());
        let sum = |a: &str, b: &str| format!("    const {t} s = {}({a}, {b});\n", Self::TwoSum.name());
        let lower = format!("{}(w, z)", Self::Less.name());
        match self {
            Self::Make => pair("x", "y"),
            Self::TwoSum => {
                let (s, b) = (r.add("x", "y"), r.sub("s", "x"));
                let (of_x, of_y) = (r.sub("x", &r.sub("s", "b")), r.sub("y", "b"));
                format!("    const float s = {s};\n    const float b = {b};\n")
                    + &pair("s", &r.add(&of_x, &of_y))
            }
            Self::FastTwoSum => {
                format!("    const float s = {};\n", r.add("x", "y"))
                    + &pair("s", &r.sub("y", &r.sub("s", "x")))
            }
            Self::Split => {
                let by_integers = target.words.conversions.map_or("", |[split, _]| split);
                by_integers.to_owned() + &pair("(float)x", "(float)(x - (double)v.x)")
            }
            Self::Widen => {
                let by_integers = target.words.conversions.map_or("", |[_, widen]| widen);
                by_integers.to_owned() + "    return (double)x;\n"
            }
            Self::Join => format!("    return {0}(z.x) + {0}(z.y);\n", Self::Widen.name()),
            Self::High => "    return z.x;\n".into(),
            Self::Neg => pair("-z.x", "-z.y"),
            Self::Abs => format!("    return z.x < 0 ? {}(z) : z;\n", Self::Neg.name()),
            Self::Add => sum("z.x", "w.x") + &joined("s.x", &r.add("s.y", &r.add("z.y", "w.y"))),
            Self::Mul => r.product(("z.x", "w.x"), &[("z.x", "w.y"), ("z.y", "w.x")]) + &joined("p", "e"),
            Self::Scale => r.product(("z.x", "x"), &[("z.y", "x")]) + &joined("p", "e"),
            Self::AddProduct => {
                r.product(("z.x", "w.x"), &[("z.x", "w.y"), ("z.y", "w.x")])
                    + &sum("a.x", "p")
                    + &joined("s.x", &r.add("s.y", &r.add("a.y", "e")))
            }
            Self::Div => {
                let rest = r.add(&r.sub(&r.sub("z.x", "p"), "e"), "z.y");
                "    const float q = z.x/w.x;\n".to_owned()
                    + &r.product(("q", "w.x"), &[("q", "w.y")])
                    + &format!("    const float rest = {rest};\n")
                    + &joined("q", "rest/w.x")
            }
            Self::Sqrt => {
                let root = target.function(MathFn::Sqrt, ScalarType::F32);
                let rest = r.add(&r.fma("-q", "q", "z.x"), "z.y");
                // the step divides by the root
                format!("    const float q = {root}(z.x);\n    if (!(z.x > 0)) {{\n")
                    + &format!(
                        "        {t} v;\n        v.x = q;\n        v.y = 0;\n        return v;\n    }}\n"
                    )
                    + &joined("q", &format!("{rest}/(2*q)"))
            }
            Self::Min => format!("    return z.x != z.x || {lower} ? w : z;\n"),
            Self::Max => {
                format!("    return z.x != z.x || {}(z, w) ? w : z;\n", Self::Less.name())
            }
            Self::Less => "    return z.x < w.x || (z.x == w.x && z.y < w.y);\n".into(),
            Self::LessEqual => "    return z.x < w.x || (z.x == w.x && z.y <= w.y);\n".into(),
            Self::Equal => "    return z.x == w.x && z.y == w.y;\n".into(),
        }
    }
}
