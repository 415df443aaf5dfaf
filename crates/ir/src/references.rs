//! Whether the ids in a kernel stand for something.
//!
//! Kernels are plain data that a caller may write down or read from a file, so that an id may point
//! past the end of its table, and an affine expression need not be one that arithmetic makes.
//! Everything else relies on both: this is checked first, and without recursion, because nothing
//! bounds the depth yet.

use crate::affine::{Affine, Atom};
use crate::calls::Piece;
use crate::expr::Expr;
use crate::ids::{Arena, Id};
use crate::kernel::{Assumption, Kernel, Node};
use crate::verify::KernelError;

impl Kernel {
    /// Checks that every id is one of this kernel's and that every affine expression is in normal
    /// form; instructions that are known to be so are passed over.
    pub(crate) fn verify_references(&self, is_known: &[bool]) -> Result<(), KernelError> {
        for var in self.vars.values() {
            let strides = var.layout.strides().into_iter().flatten();
            let affines = var.shape.iter().chain(strides);
            self.known("the shape of", &var.name, affines.filter_map(|e| self.foreign_in_affine(e)))?;
        }
        for iname in self.inames.values() {
            let constraints = iname.domain.disjuncts().iter().flatten();
            let found = constraints.filter_map(|c| self.foreign_in_affine(c.expr()));
            self.known("the domain of", &iname.name, found)?;
        }
        for rule in self.rules.values() {
            self.known("rule", &rule.name, self.foreign_in_expr(&rule.body).into_iter())?;
        }
        for (_, insn) in self.insns.iter().filter(|(id, _)| !is_known[id.index()]) {
            let parts = insn.expressions();
            let found = parts.filter_map(|e| self.foreign_in_expr(e));
            let callee = insn.callee.and_then(|c| foreign(&self.callees, c));
            self.known(
                "instruction",
                &insn.name,
                found.chain(foreign(&self.vars, insn.lhs.var)).chain(callee),
            )?;
        }
        for callee in self.callees.values() {
            let pieces = callee.code.iter().flat_map(|code| &code.text);
            let found = pieces.filter_map(|piece| match piece {
                Piece::Text(_) => None,
                Piece::Element(access) | Piece::Address(access, _) => {
                    callee.kernel.foreign_in_expr(&Expr::Load(access.clone()))
                }
                Piece::Map(var) | Piece::Begin(var, _) => foreign(&callee.kernel.vars, *var),
            });
            self.known("the code of", callee.name(), found)?;
        }
        let assumed = self.assumptions.iter().filter_map(|assumption| match assumption {
            Assumption::Params(c) => self.foreign_in_affine(c.expr()),
            Assumption::Defined(param, value) => {
                foreign(&self.vars, *param).or_else(|| self.foreign_in_expr(value))
            }
            Assumption::Injective(var) | Assumption::Ascending(var) => foreign(&self.vars, *var),
            Assumption::Outside(outside) => foreign(&self.vars, outside.array)
                .or_else(|| self.foreign_in_affine(&outside.from))
                .or_else(|| self.foreign_in_affine(&outside.to)),
            Assumption::Symmetric(symmetry) => foreign(&self.vars, symmetry.var),
            Assumption::Lists(lists) => lists.vars().into_iter().find_map(|v| foreign(&self.vars, v)),
        });
        self.known("an assumption of", &self.name, assumed)?;
        self.known("the loop tree of", &self.name, self.foreign_in_tree().into_iter())
    }

    fn known(
        &self,
        what: &str,
        name: &str,
        mut found: impl Iterator<Item = String>,
    ) -> Result<(), KernelError> {
        match found.next() {
            None => Ok(()),
            Some(found) => Err(KernelError::Reference { what: format!("{what} `{name}`"), found }),
        }
    }

    fn foreign_in_tree(&self) -> Option<String> {
        let mut open: Vec<&Node> = self.body.iter().collect();
        while let Some(node) = open.pop() {
            let found = match node {
                Node::Insn(insn) => foreign(&self.insns, *insn),
                Node::Loop(iname, body) => {
                    open.extend(body);
                    foreign(&self.inames, *iname)
                }
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }

    fn foreign_in_expr(&self, e: &Expr) -> Option<String> {
        // the list has no memory until something is put into it
        let (mut first, mut open) = (Some(e), Vec::new());
        while let Some(e) = first.take().or_else(|| open.pop()) {
            let found = match e {
                Expr::Iname(iname) => foreign(&self.inames, *iname),
                Expr::Load(access) => foreign(&self.vars, access.var),
                Expr::Rule(rule, _) => foreign(&self.rules, *rule),
                Expr::Reduce(r) => r.inames.iter().find_map(|i| foreign(&self.inames, *i)),
                Expr::Int(_)
                | Expr::Real(_)
                | Expr::RuleParam(_)
                | Expr::Unary(..)
                | Expr::Binary(..)
                | Expr::Call(..)
                | Expr::Cast(..)
                | Expr::Select(..) => None,
            };
            if found.is_some() {
                return found;
            }
            open.extend(e.operands());
        }
        None
    }

    fn foreign_in_affine(&self, e: &Affine) -> Option<String> {
        let (mut first, mut open) = (Some(e), Vec::new());
        while let Some(e) = first.take().or_else(|| open.pop()) {
            let ascending = e.terms().windows(2).all(|w| w[0].0 < w[1].0);
            if !ascending || e.terms().iter().any(|(_, c)| *c == 0) {
                return Some("terms out of order or with factor 0".into());
            }
            for (atom, _) in e.terms() {
                let found = match atom {
                    Atom::Iname(iname) => foreign(&self.inames, *iname),
                    Atom::Var(var) => foreign(&self.vars, *var),
                    Atom::Floor(_, d) if *d < 2 => Some(format!("a division by {d}")),
                    Atom::Floor(numerator, _) => {
                        open.push(numerator);
                        None
                    }
                };
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }
}

/// The id as text, if the table ends before it.
fn foreign<I: Id, T>(table: &Arena<I, T>, id: I) -> Option<String> {
    (id.index() >= table.len())
        .then(|| format!("{}{}, of which there are {}", I::PREFIX, id.index(), table.len()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const TEXT: &str = "kernel k\nparam n: i32\nassume n >= 1\narg map: i32[n] in\nassume injective(map)\n\
        arg x: f64[n] inout\nrule f(a) := 2.0*a\n\nfor i in 0..floor_div(n, 2)\n  s: x[i] = f(x[map[i]]) + sum(j in 0..n: x[j])\n  \
        call g\n    t: x[i] = x[i]\ncallee g\n  arg y: f64 inout\n  s: y = y\n  code c (\"{y} = {y};\")\n";

    /// Every number in the serialised form, replaced by others one by one: a kernel that verifies also
    /// prints, and nothing panics.
    #[test]
    fn hostile_numbers_are_refused_or_harmless() {
        let kernel = crate::text::parse(TEXT).unwrap();
        let json = serde_json::to_string(&kernel).unwrap();
        let digits = |c: char| c.is_ascii_digit() || c == '-';
        let mut refused = 0;
        let mut from = 0;
        while let Some(start) = json[from..].find(digits).map(|k| k + from) {
            let end = json[start..].find(|c| !digits(c)).map_or(json.len(), |k| k + start);
            for number in ["0", "1", "2", "7", "4294967295", "-1", "9223372036854775807"] {
                let hostile = format!("{}{number}{}", &json[..start], &json[end..]);
                let Ok(kernel) = serde_json::from_str::<Kernel>(&hostile) else { continue };
                match kernel.verify() {
                    Ok(()) => assert!(!kernel.canonical().to_string().is_empty()),
                    Err(_) => refused += 1,
                }
            }
            from = end;
        }
        assert!(refused > 50, "{refused}");
    }

    #[test]
    fn foreign_ids_are_named() {
        let mut kernel = crate::text::parse(TEXT).unwrap();
        kernel.body.push(Node::Insn(Id::from_index(3)));
        let error = kernel.verify().unwrap_err().to_string();
        assert_eq!(
            error,
            "the loop tree of `k` mentions s3, of which there are 2; build kernels from text or with `KernelBuilder`"
        );
    }
}
