//! What a kernel with tables was lowered from, so that it can be lowered again with others.

use super::directions::Directions;
use super::kernel::{Again, Origin};
use super::{LoweredKernel, NoSymmetry, Orbits, TabulatedOptions, build, tensor_order};
use crate::form::FormError;
use crate::import::Imported;
use crate::tabulated::{
    Evaluation, Integral, IntegralType, MathFunction, Node, Precision, Role, TabulatedForm,
};
use kingpost_fem::cell::{CellShape, orbits_of_points};
use kingpost_fem::numbering::NumberingOrder;
use kingpost_interp::{Value, interpret};
use std::collections::BTreeSet;

/// Results of the form on two reference cells differ by no more than this part of the largest one.
const SAME_F64: f64 = 1e-9;
/// The same in single precision.
const SAME_F32: f64 = 1e-3;

impl LoweredKernel {
    fn origin(&self) -> Result<&Origin, NoSymmetry> {
        self.origin.as_deref().ok_or_else(|| NoSymmetry::NoForm { kernel: self.kernel.name.clone() })
    }

    /// The kernel with derivatives along symmetric directions.
    pub(crate) fn symmetric(&self) -> Result<(Self, Vec<Orbits>), NoSymmetry> {
        let origin = self.origin()?;
        origin.symmetric.get_or_init(|| origin.lowered_again(false)).clone()
    }

    /// The same with the points of rules in orbits.
    pub(crate) fn in_point_orbits(&self) -> Result<(Self, Vec<Orbits>), NoSymmetry> {
        let origin = self.origin()?;
        origin.in_point_orbits.get_or_init(|| origin.lowered_again(true)).clone()
    }

    /// As [`LoweredForm::entity_parts`](super::LoweredForm::entity_parts), by the nodes of its space.
    pub(crate) fn entity_parts(&self) -> Option<Vec<u64>> {
        let count = usize::try_from(self.program.as_ref().ok()?.count()?).ok()?;
        self.origin.as_ref()?.entity_parts(count)
    }
}

impl Origin {
    fn lowered_again(&self, in_point_orbits: bool) -> Again {
        let refused = |found| NoSymmetry::Tables { kernel: self.name.clone(), found };
        let cell = self.check().map_err(refused)?;
        let orbits = self.orbits().ok_or_else(|| NoSymmetry::Nodes { kernel: self.name.clone() })?;
        let directions = Directions::Symmetric;
        // a derivative along a direction has the signs of the vertices from the second one on
        let signs = directions.vertices(cell).iter().map(|v| v[1..].iter().map(|s| f64::from(*s)).collect());
        let signs: Vec<Vec<f64>> = signs.collect();
        let mut form = self.form.along(&signs, directions.volume(cell)).map_err(refused)?;
        if in_point_orbits {
            form = form.in_point_orbits().map_err(refused)?;
        }
        let plain = TabulatedOptions::default();
        let (own, other) = (self.build(&self.form, &plain)?, self.build(&form, &plain)?);
        self.compare(own, other).map_err(refused)?;
        let mut lowered = self.build(&form, &self.options)?;
        let integrals: Vec<&Integral> = form.integrals.iter().collect();
        let origin = Self::new(&form, &self.name, &integrals, &self.options, self.first);
        lowered.origin = Some(origin.into());
        Ok((lowered, orbits))
    }

    fn build(&self, form: &TabulatedForm, options: &TabulatedOptions) -> Result<LoweredKernel, FormError> {
        let orders = tensor_order::orders(form, options);
        let integrals: Vec<&Integral> = form.integrals.iter().collect();
        build::build(form, &self.name, &integrals, options, &orders, self.first)
    }

    /// The degrees of freedom of a cell on vertices, edges, faces and in the interior, of the space that
    /// has as many.
    fn entity_parts(&self, count: usize) -> Option<Vec<u64>> {
        let space = self.spaces().into_iter().map(|space| &self.form.spaces[space]);
        let space = space.filter(|space| space.columns == count).find(|space| space.nodes.is_some())?;
        let (nodes, dim) = (space.nodes.as_ref()?, self.form.cell.dim());
        let on_entities_of = |node: &Vec<f64>| {
            let first = 1.0 - node.iter().sum::<f64>();
            node.iter().chain([&first]).filter(|x| x.abs() > 1e-10).count() - 1
        };
        let dims: Vec<usize> = nodes.iter().map(on_entities_of).collect();
        let parts = (0..=dim).map(|d| dims.iter().filter(|found| **found == d).count() as u64);
        (self.form.cell.is_simplex() && dims.is_sorted()).then(|| parts.filter(|part| *part > 0).collect())
    }

    /// The spaces of coefficients and results.
    fn spaces(&self) -> BTreeSet<usize> {
        let coefficients = self.form.functions.iter().filter(|f| f.role == Role::Coefficient);
        coefficients.map(|f| f.space).chain(self.form.outputs.iter().flat_map(|o| o.spaces.clone())).collect()
    }

    /// The shape of the cells. Refuses what has no symmetric directions, and what tests at random
    /// points do not settle.
    fn check(&self) -> Result<CellShape, String> {
        let form = &self.form;
        let shape = form.cell;
        if !matches!(shape, CellShape::Triangle | CellShape::Tetrahedron) {
            return Err(format!("cells of the shape {shape}"));
        }
        if form.rank != 1 {
            return Err(if form.rank == 0 { "a functional" } else { "a bilinear form" }.into());
        }
        if form.integrals.iter().any(|i| i.over != IntegralType::Cell) {
            return Err("integrals over facets".into());
        }
        let position = form.functions.iter().find(|f| f.role == Role::Coordinates);
        if position.is_some_and(|p| form.spaces[p.space].columns != form.cell.n_vertices()) {
            return Err("curved cells".into());
        }
        form.integrals.iter().try_for_each(check_conditions)?;
        Ok(shape)
    }

    /// The orbits of the nodes of the spaces that are gathered and added to.
    fn orbits(&self) -> Option<Vec<Orbits>> {
        let of = |space: usize| {
            let nodes = self.form.spaces[space].nodes.as_ref()?;
            orbits_of_points(self.form.cell, &nodes.concat())
        };
        self.spaces().into_iter().map(of).collect()
    }

    /// Compares the results of both kernels on the cells of a deformed mesh. What both compute is
    /// analytic in the positions and the degrees of freedom between the zeros of what absolute values
    /// are taken of: where the two are no identity, they agree at no general point.
    fn compare(&self, own: LoweredKernel, other: LoweredKernel) -> Result<(), String> {
        let results = |kernel: LoweredKernel| -> Result<Vec<f64>, String> {
            let imported = Imported { form: self.form.clone(), kernels: vec![kernel] };
            // positive, so that roots and logarithms have values
            let mut state = 0.0_f64;
            let mut random = || {
                state = (state + 0.618_033_988_749_894_9).fract();
                0.3 + 0.7 * state
            };
            let inputs = imported
                .unit_inputs(1, NumberingOrder::FirstTouch, &mut random)
                .map_err(|e| e.to_string())?;
            let mut memory = imported.bind(0, &inputs.of(0)).map_err(|e| e.to_string())?;
            interpret(&imported.kernels[0].kernel, &mut memory).map_err(|e| e.to_string())?;
            let outputs = self.form.outputs.iter().filter_map(|o| memory.get(&o.name));
            Ok(outputs.flat_map(Value::to_f64).collect())
        };
        let (own, other) = (results(own)?, results(other)?);
        let most = own.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        let part = match self.form.scalar {
            Precision::F64 | Precision::C128 => SAME_F64,
            Precision::F32 | Precision::C64 => SAME_F32,
        };
        // not a number is like nothing
        let alike = |a: f64, b: f64| (a - b).abs() <= part * most;
        let differs = own.iter().zip(&other).find(|(a, b)| !alike(**a, **b));
        match differs {
            Some((a, b)) => Err(format!(
                "an integrand that depends on the reference cell: a result of {a} with derivatives along its axes, \
                 of {b} along symmetric directions"
            )),
            None => Ok(()),
        }
    }
}

/// Refuses conditions on what changes with the reference cell: a test at points tells nothing of the
/// branch that none of them takes.
fn check_conditions(integral: &Integral) -> Result<(), String> {
    let mut changes: Vec<bool> = Vec::new();
    let is_derivative = |e: &Evaluation| {
        let row = |row: &[f64]| (row.iter().sum::<f64>() - 1.0).abs() > 1e-9;
        let table = &integral.tables[e.table];
        table.values.entries().chunks_exact(table.dofs().max(1)).any(row)
    };
    for node in &integral.nodes {
        let below = node.operands().iter().any(|o| changes[*o]);
        let changes_here = match node {
            Node::Weight => true,
            Node::Evaluation(place) => is_derivative(&integral.evaluations[*place]),
            _ => below,
        };
        let branches = matches!(node, Node::Compare(..))
            || matches!(node, Node::Math(f, _) if matches!(f, MathFunction::Sign | MathFunction::Min | MathFunction::Max));
        if below && branches {
            return Err("a comparison of what depends on the reference cell".into());
        }
        changes.push(changes_here);
    }
    Ok(())
}
