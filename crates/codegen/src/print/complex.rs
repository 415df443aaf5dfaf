//! Complex numbers in source: structures of two members, and functions on them.
//!
//! C's own type is not used: its product calls a library, and CUDA and OpenCL have none.

use crate::complex::ComplexOp;
use crate::target::TargetDescription;
use kingpost_ir::{MathFn, ScalarType};

impl ComplexOp {
    /// The function, as the interpreter computes.
    pub(crate) fn source(self, ty: ScalarType, target: &TargetDescription) -> String {
        let (t, r, name) = (target.ty(ty), target.ty(ty.part()), self.name(ty));
        let other = target.ty(if ty == ScalarType::C64 { ScalarType::C128 } else { ScalarType::C64 });
        let result = self.value(ty).map_or("int", |value| target.ty(value));
        let params = match self {
            Self::Make => format!("const {r} x, const {r} y"),
            Self::Convert => format!("const {other} z"),
            Self::Real | Self::Imag | Self::Neg | Self::Conj | Self::Abs => format!("const {t} z"),
            Self::Exp | Self::Log | Self::Sqrt | Self::Sin | Self::Cos => format!("const {t} z"),
            Self::Equal | Self::Add | Self::Sub | Self::Mul | Self::Div | Self::Pow => {
                format!("const {t} z, const {t} w")
            }
            Self::Plus | Self::Minus | Self::Scale | Self::Shrink => format!("const {t} z, const {r} x"),
            Self::From => format!("const {r} x, const {t} z"),
        };
        let body = self.body(ty, target);
        format!("{} {result} {name}({params})\n{{\n{body}}}\n", target.words.inline)
    }

    fn body(self, ty: ScalarType, target: &TargetDescription) -> String {
        let (t, r) = (target.ty(ty), target.ty(ty.part()));
        let f = |function| target.function(function, ty.part());
        let pair =
            |re: &str, im: &str| format!("    {t} v;\n    v.x = {re};\n    v.y = {im};\n    return v;\n");
        let hypot = f(MathFn::Hypot);
        match self {
            Self::Make => pair("x", "y"),
            Self::Convert => pair(&format!("({r})z.x"), &format!("({r})z.y")),
            Self::Real => "    return z.x;\n".into(),
            Self::Imag => "    return z.y;\n".into(),
            Self::Neg => pair("-z.x", "-z.y"),
            Self::Conj => pair("z.x", "-z.y"),
            Self::Abs => format!("    return {hypot}(z.x, z.y);\n"),
            Self::Equal => "    return z.x == w.x && z.y == w.y;\n".into(),
            Self::Add => pair("z.x + w.x", "z.y + w.y"),
            Self::Sub => pair("z.x - w.x", "z.y - w.y"),
            Self::Mul => pair("z.x*w.x - z.y*w.y", "z.x*w.y + z.y*w.x"),
            Self::Div => quotient(t, r, &f(MathFn::Fabs)),
            Self::Plus => pair("z.x + x", "z.y"),
            Self::Minus => pair("z.x - x", "z.y"),
            Self::From => pair("x - z.x", "-z.y"),
            Self::Scale => pair("z.x*x", "z.y*x"),
            Self::Shrink => pair("z.x/x", "z.y/x"),
            Self::Exp => {
                let (exp, cos, sin) = (f(MathFn::Exp), f(MathFn::Cos), f(MathFn::Sin));
                // an infinite angle of a number of size 0, and none
                format!(
                    "    const {r} size = {exp}(z.x);\n    {t} v;\n    v.x = size;\n    v.y = z.y;\n    \
                     if (z.y != 0) {{\n        const int lost = size == 0 && !(z.y - z.y == 0);\n        \
                     v.x = lost ? 0 : size*{cos}(z.y);\n        v.y = lost ? 0 : size*{sin}(z.y);\n    }}\n    \
                     return v;\n"
                )
            }
            Self::Log => {
                let (log, angle) = (f(MathFn::Log), f(MathFn::Atan2));
                pair(&format!("{log}({hypot}(z.x, z.y))"), &format!("{angle}(z.y, z.x)"))
            }
            Self::Sqrt => {
                square_root(t, r, &hypot, [&f(MathFn::Sqrt), &f(MathFn::Fabs), &f(MathFn::Copysign)])
            }
            Self::Sin | Self::Cos => {
                let [sin, cos, sinh, cosh] = [MathFn::Sin, MathFn::Cos, MathFn::Sinh, MathFn::Cosh].map(&f);
                match self == Self::Sin {
                    true => pair(&format!("{sin}(z.x)*{cosh}(z.y)"), &format!("{cos}(z.x)*{sinh}(z.y)")),
                    false => pair(&format!("{cos}(z.x)*{cosh}(z.y)"), &format!("-({sin}(z.x)*{sinh}(z.y))")),
                }
            }
            Self::Pow => power(ty, t, r, &f(MathFn::Fabs), &f(MathFn::Trunc)),
        }
    }
}

/// By the larger part of the divisor, so that no square overflows (Smith 1962).
fn quotient(t: &str, r: &str, fabs: &str) -> String {
    format!(
        "    {t} v;\n    if ({fabs}(w.x) >= {fabs}(w.y)) {{\n        \
         if (w.x == 0 && w.y == 0) {{\n            v.x = z.x/{fabs}(w.x);\n            v.y = z.y/{fabs}(w.x);\n            \
         return v;\n        }}\n        const {r} ratio = w.y/w.x;\n        const {r} scale = w.x + w.y*ratio;\n        \
         v.x = (z.x + z.y*ratio)/scale;\n        v.y = (z.y - z.x*ratio)/scale;\n        return v;\n    }}\n    \
         const {r} ratio = w.x/w.y;\n    const {r} scale = w.x*ratio + w.y;\n    \
         v.x = (z.x*ratio + z.y)/scale;\n    v.y = (z.y*ratio - z.x)/scale;\n    return v;\n"
    )
}

/// Kahan 1987: the cut is the negative real axis, and the real part is not negative.
fn square_root(t: &str, r: &str, hypot: &str, [sqrt, fabs, copysign]: [&str; 3]) -> String {
    let eighth = if r == "float" { "0.125f" } else { "0.125" };
    format!(
        "    {t} v;\n    if ((z.x == 0 && z.y == 0) || (z.y - z.y != 0 && z.y == z.y)) {{\n        \
         v.x = {fabs}(z.y);\n        v.y = z.y;\n        return v;\n    }}\n    \
         if (z.x - z.x != 0 && z.x == z.x) {{\n        const {r} nothing = z.y*0;\n        \
         v.x = z.x < 0 ? {fabs}(nothing) : z.x;\n        \
         v.y = {copysign}(z.x < 0 ? z.x : nothing, z.y);\n        return v;\n    }}\n    \
         const {r} root = 2*{sqrt}({fabs}(z.x)*{eighth} + {hypot}(z.x*{eighth}, z.y*{eighth}));\n    \
         v.x = z.x >= 0 ? root : {fabs}(z.y)/(2*root);\n    \
         v.y = z.x >= 0 ? z.y/(2*root) : {copysign}(root, z.y);\n    return v;\n"
    )
}

/// By products where the exponent is a small whole number, else by the logarithm.
fn power(ty: ScalarType, t: &str, r: &str, fabs: &str, trunc: &str) -> String {
    let [mul, exp, log] = [ComplexOp::Mul, ComplexOp::Exp, ComplexOp::Log].map(|op| op.name(ty));
    format!(
        "    {t} v;\n    v.x = 1;\n    v.y = 0;\n    \
         if (w.y == 0 && {trunc}(w.x) == w.x && {fabs}(w.x) <= 100) {{\n        {t} square = z;\n        \
         for (int left = (int){fabs}(w.x); left > 0; left /= 2) {{\n            if (left % 2 == 1) {{\n                \
         v = {mul}(v, square);\n            }}\n            square = {mul}(square, square);\n        }}\n        \
         if (w.x < 0) {{\n            const {r} size = v.x*v.x + v.y*v.y;\n            v.x = v.x/size;\n            \
         v.y = -v.y/size;\n        }}\n        return v;\n    }}\n    if (z.x == 0 && z.y == 0) {{\n        \
         v.x = w.x > 0 ? 0 : z.x/({fabs}(z.x));\n        v.y = w.x > 0 ? 0 : z.x/({fabs}(z.x));\n        return v;\n    }}\n    \
         return {exp}({mul}(w, {log}(z)));\n"
    )
}

/// The definition of a complex type of C, in whose headers is none that is a structure.
pub(crate) fn structure(ty: ScalarType, target: &TargetDescription) -> String {
    format!("typedef struct {{\n    {} x, y;\n}} {};\n", target.ty(ty.part()), target.ty(ty))
}

/// An atomic sum: one of each part. `part` is the function of the real type, if it has one.
pub(crate) fn atomic_sum(
    ty: ScalarType,
    local: bool,
    part: &str,
    (name, target): (&str, &TargetDescription),
) -> String {
    let (t, r, inline) = (target.ty(ty), target.ty(ty.part()), target.words.inline);
    if target.is_host() {
        return format!(
            "{inline} void {name}({t} *p, const {t} v)\n{{\n#pragma omp atomic\n    p->x += v.x;\n\
             #pragma omp atomic\n    p->y += v.y;\n}}\n"
        );
    }
    let space = match (target.atomics.spaces, local) {
        (true, true) => "volatile __local ",
        (true, false) => "volatile __global ",
        (false, _) => "",
    };
    format!(
        "{inline} void {name}({space}{t} *p, const {t} v)\n{{\n    {space}{r} *const parts = ({space}{r} *)p;\n    \
         {part}(parts, v.x);\n    {part}(parts + 1, v.y);\n}}\n"
    )
}
