//! The loops that fill a temporary, and the reads of it.

use crate::error::Cause;
use crate::lookup;
use crate::proofs::footprint::{Span, element_names};
use crate::staging::Tile;
use crate::staging::region::{Contents, Region};
use crate::tree::replace_loop;
use purlin_ir::polyhedral::Polyhedral;
use purlin_ir::{
    AddressSpace, Affine, AxisTag, BinaryOp, Constraint, Domain, Expr, Iname, InameId, Insn, Kernel, Node,
    ScalarType, VarId, VarKind, Variable, WriteOp,
};
use purlin_isl as isl;
use std::collections::BTreeSet;

impl Tile<'_> {
    /// The kernel with the temporary, filled in front of the region's first read, and its reads replaced.
    ///
    /// # Errors
    /// Names that are taken or of the wrong number; conditions without closed form.
    pub(crate) fn fill(
        &self,
        poly: &Polyhedral,
        region: &Region,
        contents: &Contents,
        (ty, space): (ScalarType, AddressSpace),
    ) -> Result<Kernel, Cause> {
        let mut filled = poly.kernel.clone();
        let axes = axes(poly.kernel, region, contents);
        let shape: Vec<_> = axes.iter().filter(|a| a.kept).map(|a| Affine::constant(a.span.extent)).collect();
        let temporary = Variable::new(self.name, ty, VarKind::Temporary, shape, space);
        let tile = filled.vars.push(temporary);
        redirect(&mut filled, region, &axes, tile);
        let loops = if self.work_items.is_empty() {
            self.box_loops(&mut filled, &axes)?
        } else {
            self.flat_loops(&mut filled, &axes)?
        };
        let from: Vec<_> = axes.iter().zip(&loops.offsets).map(|(a, d)| a.span.lower.plus(d)).collect();
        let predicate = restrict(&mut filled, poly, &loops, &contents.conditions, &from)?;
        let kept = axes.iter().zip(&loops.offsets).filter(|(a, _)| a.kept).map(|(_, d)| Expr::from_affine(d));
        let lhs = purlin_ir::Access::new(tile, kept.collect::<Vec<_>>());
        let rhs = Expr::load(region.var, from.iter().map(Expr::from_affine).collect::<Vec<_>>());
        let (name, tags) = (self.insn_name(), BTreeSet::new());
        let insn = Insn { name, lhs, op: WriteOp::Assign, rhs, predicate, tags, callee: None };
        let mut node = Node::Insn(filled.insns.push(insn));
        for iname in loops.inames.into_iter().rev() {
            node = Node::Loop(iname, vec![node]);
        }
        insert(&mut filled, region, &node);
        Ok(filled)
    }

    /// One loop for each axis that is kept.
    fn box_loops(&self, kernel: &mut Kernel, axes: &[Axis]) -> Result<Loops, Cause> {
        let kept = axes.iter().filter(|a| a.kept).count();
        if !self.inames.is_empty() && self.inames.len() != kept {
            return Err(Cause::Argument(format!(
                "the copy has {kept} loops, found {} names; give one for each axis of the box with more than one \
                 element",
                self.inames.len()
            )));
        }
        let mut loops = Loops::default();
        for axis in axes {
            if !axis.kept {
                loops.offsets.push(Affine::default());
                continue;
            }
            let k = loops.inames.len();
            let name = self.inames.get(k).cloned().unwrap_or_else(|| format!("{}_{k}", self.name));
            let iname = new_iname(kernel, name, AxisTag::Sequential)?;
            let d = Affine::iname(iname);
            let mut bounds = within(&d, axis.span.extent);
            bounds.extend(axis.guards(&d));
            kernel.inames[iname].domain = Domain::conjunction(bounds);
            loops.inames.push(iname);
            loops.offsets.push(d);
        }
        Ok(loops)
    }

    /// Rounds of a work-group over the elements of the box in row-major order.
    fn flat_loops(&self, kernel: &mut Kernel, axes: &[Axis]) -> Result<Loops, Cause> {
        let length: i64 = axes.iter().map(|a| a.span.extent).product();
        let group: i64 = self.work_items.iter().product();
        let rounds = (length - 1).div_euclid(group) + 1;
        let mut loops = Loops::default();
        let mut position = Affine::default();
        if rounds > 1 {
            let iname = new_iname(kernel, format!("{}_o", self.name), AxisTag::Sequential)?;
            kernel.inames[iname].domain = Domain::conjunction(within(&Affine::iname(iname), rounds));
            position = Affine::iname(iname).times(group);
            loops.inames.push(iname);
        }
        let mut stride = group;
        let mut innermost = Vec::new();
        for (k, size) in (0_u8..3).zip(self.work_items).collect::<Vec<_>>().into_iter().rev() {
            stride /= size;
            let iname = new_iname(kernel, format!("{}_l{k}", self.name), AxisTag::Local(k))?;
            innermost = within(&Affine::iname(iname), *size);
            kernel.inames[iname].domain = Domain::conjunction(innermost.clone());
            position = position.plus(&Affine::iname(iname).times(stride));
            loops.inames.push(iname);
        }
        if length % group != 0 {
            innermost.push(Constraint::lt(&position, &Affine::constant(length)));
        }
        let mut size = length;
        for axis in axes {
            if axis.span.extent == 1 {
                innermost.extend(axis.guards(&Affine::default()));
                loops.offsets.push(Affine::default());
                continue;
            }
            let whole = size;
            size /= axis.span.extent;
            // the first axis needs no remainder: the position is below the length
            let offset = position.floor_div(size);
            let offset = if whole == length { offset } else { offset.modulo(axis.span.extent) };
            innermost.extend(axis.guards(&offset));
            loops.offsets.push(offset);
        }
        if let Some(last) = loops.inames.last() {
            kernel.inames[*last].domain = Domain::conjunction(innermost);
        }
        Ok(loops)
    }
}

/// The copy loops, outer first, and the offset in the box along each axis.
#[derive(Default)]
struct Loops {
    inames: Vec<InameId>,
    offsets: Vec<Affine>,
}

/// An axis of the box.
struct Axis {
    span: Span,
    /// Whether elements below and beyond the array must be left out.
    guard: [bool; 2],
    /// Elements of the array, if it ends anywhere.
    shape: Option<Affine>,
    /// Whether the temporary has it.
    kept: bool,
}

impl Axis {
    fn new(span: Span, guard: [bool; 2], shape: Option<Affine>) -> Self {
        let kept = span.extent > 1 || guard != [false; 2];
        Self { span, guard, shape, kept }
    }

    fn guards(&self, offset: &Affine) -> Vec<Constraint> {
        let index = self.span.lower.plus(offset);
        let below = self.guard[0].then(|| Constraint::le(&Affine::default(), &index));
        let beyond = self.shape.as_ref().filter(|_| self.guard[1]).map(|n| Constraint::lt(&index, n));
        below.into_iter().chain(beyond).collect()
    }
}

fn within(d: &Affine, extent: i64) -> Vec<Constraint> {
    vec![Constraint::le(&Affine::default(), d), Constraint::lt(d, &Affine::constant(extent))]
}

fn new_iname(kernel: &mut Kernel, name: String, tag: AxisTag) -> Result<InameId, Cause> {
    lookup::free(kernel, &name)?;
    Ok(kernel.inames.push(Iname { name, domain: Domain::universe(), tag }))
}

/// The axes of the box; those with one element disappear.
fn axes(kernel: &Kernel, region: &Region, contents: &Contents) -> Vec<Axis> {
    let shape = &kernel.vars[region.var].shape;
    let spans = contents.spans.iter().zip(&contents.guards).enumerate();
    spans.map(|(k, (span, guard))| Axis::new(span.clone(), *guard, shape.get(k).cloned())).collect()
}

fn insert(kernel: &mut Kernel, region: &Region, node: &Node) {
    let insert = |mut body: Vec<Node>| {
        body.insert(region.node.min(body.len()), node.clone());
        body
    };
    match region.at {
        None => kernel.body = insert(std::mem::take(&mut kernel.body)),
        Some(at) => {
            replace_loop(&mut kernel.body, at, &mut |body| vec![Node::Loop(at, insert(body))]);
        }
    }
}

/// Leaves out the elements that do not satisfy the conditions: by the bounds of the innermost loop, or by the
/// predicate that is returned where there is no loop.
fn restrict(
    kernel: &mut Kernel,
    poly: &Polyhedral,
    loops: &Loops,
    conditions: &[Vec<isl::Constraint>],
    elements: &[Affine],
) -> Result<Option<Expr>, Cause> {
    let names = element_names(elements.len());
    let value = |name: &str| match names.iter().position(|n| n == name) {
        Some(k) => elements.get(k).cloned(),
        None => poly.to_affine(&isl::Affine::name(name)),
    };
    let one = |c: &isl::Constraint| {
        let e = with_values(&c.expr, &value)?;
        Some(match c.kind {
            isl::ConstraintKind::Zero => Constraint::equal(&e, &Affine::default()),
            isl::ConstraintKind::NonNegative => Constraint::le(&Affine::default(), &e),
        })
    };
    let all: Option<Vec<Vec<_>>> = conditions.iter().map(|d| d.iter().map(one).collect()).collect();
    let Some(all) = all else {
        return Err(Cause::Argument(
            "what is read has no closed form; copy the box around it instead".into(),
        ));
    };
    let wanted = Domain::union(all);
    if wanted == Domain::universe() {
        return Ok(None);
    }
    match loops.inames.last() {
        Some(last) => {
            kernel.inames[*last].domain = kernel.inames[*last].domain.intersect(&wanted);
            Ok(None)
        }
        None => Ok(condition(&wanted)),
    }
}

/// An expression by names with a value for each name.
fn with_values(e: &isl::Affine, value: &dyn Fn(&str) -> Option<Affine>) -> Option<Affine> {
    let mut result = Affine::constant(e.constant);
    for (name, c) in &e.terms {
        result = result.plus(&value(name)?.times(*c));
    }
    for (div, c) in &e.divs {
        let floor = with_values(&div.numerator, value)?.floor_div(div.denominator);
        result = result.plus(&floor.times(*c));
    }
    Some(result)
}

/// A set of loops and parameters as a truth value; `None` for everything.
fn condition(domain: &Domain) -> Option<Expr> {
    let one = |c: &Constraint| {
        let op = match c {
            Constraint::Zero(_) => BinaryOp::Eq,
            Constraint::NonNegative(_) => BinaryOp::Le,
        };
        Expr::binary(op, Expr::Int(0), Expr::from_affine(c.expr()))
    };
    let all = |d: &Vec<Constraint>| d.iter().map(one).reduce(|a, b| Expr::binary(BinaryOp::And, a, b));
    let disjuncts: Option<Vec<_>> = domain.disjuncts().iter().map(all).collect();
    disjuncts?.into_iter().reduce(|a, b| Expr::binary(BinaryOp::Or, a, b))
}

/// Reads the temporary instead of the array.
fn redirect(kernel: &mut Kernel, region: &Region, axes: &[Axis], tile: VarId) {
    let mut rewrite = |e: Expr| match e {
        Expr::Load(access) if access.var == region.var => {
            let index = access.index.iter().zip(axes).filter(|(_, a)| a.kept).map(|(index, axis)| {
                let shifted = index.as_affine().map(|i| Expr::from_affine(&i.minus(&axis.span.lower)));
                shifted.unwrap_or_else(|| index.clone() - Expr::from_affine(&axis.span.lower))
            });
            Expr::load(tile, index.collect::<Vec<_>>())
        }
        other => other,
    };
    for insn in &region.insns {
        kernel.insns[*insn].map_expressions(&mut rewrite);
    }
}
