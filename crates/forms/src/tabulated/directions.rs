//! Tables of derivatives along other directions than the axes of the reference cell.

use super::{Integral, Table, TabulatedForm, Values};

/// What a table holds of the basis functions of an element with nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Values,
    /// First derivatives along an axis of the reference cell.
    Derivatives(usize),
}

/// The nodes of the basis functions that are taken from a table.
type NodesOf<'f> = Vec<&'f [f64]>;

impl TabulatedForm {
    /// The form on another reference cell, that of the given directions: derivatives are along these,
    /// and weights are a part of the volume that they span, with the axes as 1. Results are the same if
    /// integrands depend on the reference cell by derivatives of functions and by the Jacobian alone,
    /// which is not checked here.
    ///
    /// # Shapes and units
    /// `[directions, axes]`, as many directions as axes.
    ///
    /// # Errors
    /// In words, what was found: a space without nodes, a table that holds neither values nor first
    /// derivatives of such an element, a derivative along some axes alone.
    pub(crate) fn along(&self, directions: &[Vec<f64>], volume: f64) -> Result<Self, String> {
        let mut form = self.clone();
        for (integral, own) in form.integrals.iter_mut().zip(&self.integrals) {
            for (place, table) in integral.tables.iter_mut().enumerate() {
                let uses: Vec<NodesOf<'_>> = self.uses(own, place)?;
                let Some(first) = uses.first() else { continue };
                let content = content(&own.tables[place], first)?;
                if uses.iter().any(|nodes| nodes != first) {
                    return Err(format!("the table `{}` of two elements", table.name));
                }
                let Content::Derivatives(axis) = content else { continue };
                let along_axes = (0..directions.len()).map(|axis| self.derivatives(own, first, axis));
                let along_axes = along_axes.collect::<Result<Vec<_>, _>>()?;
                table.values = combined(&along_axes, &directions[axis])?;
                table.name = renamed(&table.name, axis);
            }
            integral.weights.iter_mut().for_each(|w| *w /= volume);
            for evaluation in &mut integral.evaluations {
                let (old, new) =
                    (&own.tables[evaluation.table].name, &integral.tables[evaluation.table].name);
                let axis = (0..directions.len()).find(|axis| old != new && *new == renamed(old, *axis));
                if let (Some(axis), Some(name)) = (axis, &mut evaluation.name) {
                    *name = renamed(name, axis);
                }
            }
        }
        Ok(form)
    }

    /// The nodes of whatever takes basis functions from a table.
    fn uses<'f>(&'f self, integral: &Integral, table: usize) -> Result<Vec<NodesOf<'f>>, String> {
        let evaluated = integral.evaluations.iter().filter(|e| e.table == table);
        let evaluated = evaluated.map(|e| (self.functions[e.function].space, e.offset, e.stride));
        let arguments = integral.terms.iter().flat_map(|term| {
            let spaces = self.outputs[term.output].spaces.iter();
            term.arguments.iter().zip(spaces).filter(|(a, _)| a.table == table)
        });
        let arguments = arguments.map(|(a, space)| (*space, a.offset, a.stride));
        let columns = integral.tables[table].dofs();
        let one = |(space, offset, stride): (usize, usize, usize)| {
            let space = &self.spaces[space];
            let without = || format!("the space `{}` of {}", space.name, space.description_or_unknown());
            let nodes = space.nodes.as_ref().filter(|_| space.transforms.is_empty()).ok_or_else(without)?;
            Ok((0..columns).map(|i| nodes[offset + stride * i].as_slice()).collect())
        };
        evaluated.chain(arguments).map(one).collect()
    }

    /// The table of the derivatives along an axis of the element with these nodes.
    fn derivatives<'i>(
        &self,
        integral: &'i Integral,
        nodes: &[&[f64]],
        axis: usize,
    ) -> Result<&'i Table, String> {
        for (place, table) in integral.tables.iter().enumerate() {
            let is_its = self.uses(integral, place)?.iter().any(|own| own == nodes);
            if is_its && content(table, nodes) == Ok(Content::Derivatives(axis)) {
                return Ok(table);
            }
        }
        Err(format!("derivatives along some axes alone, none along axis {axis}"))
    }
}

impl super::Space {
    fn description_or_unknown(&self) -> &str {
        if self.description.is_empty() { "an unknown element" } else { &self.description }
    }
}

/// What a table holds: basis functions with nodes add up to 1, and weighted with their nodes to the
/// position, whose derivatives along the axes are those of the coordinates.
fn content(table: &Table, nodes: &[&[f64]]) -> Result<Content, String> {
    let dim = nodes.first().map_or(0, |node| node.len());
    let of_row = |row: &[f64]| {
        let tolerance = 1e-9 * row.iter().fold(1.0_f64, |most, entry| most.max(entry.abs()));
        let near = |a: f64, b: f64| (a - b).abs() <= tolerance;
        let sum: f64 = row.iter().sum();
        let moment = |axis: usize| row.iter().zip(nodes).map(|(t, node)| t * node[axis]).sum::<f64>();
        if near(sum, 1.0) {
            return Some(Content::Values);
        }
        let is_along = |axis: &usize| (0..dim).all(|k| near(moment(k), f64::from(u8::from(k == *axis))));
        (0..dim).find(is_along).filter(|_| near(sum, 0.0)).map(Content::Derivatives)
    };
    let mut rows = table.values.entries().chunks_exact(table.dofs().max(1)).map(of_row);
    let first = rows.next().flatten();
    first.filter(|first| rows.all(|row| row == Some(*first))).ok_or_else(|| {
        format!("the table `{}`, which holds neither values nor first derivatives of its element", table.name)
    })
}

/// The sum of tables with factors; one with one row for all points is added at each.
fn combined(tables: &[&Table], factors: &[f64]) -> Result<Values, String> {
    let columns = tables.first().map_or(0, |t| t.dofs());
    let most = tables.iter().map(|t| t.values.entries().len()).max().unwrap_or(0);
    let entries = (0..most).map(|k| {
        let entry = |t: &&Table| t.values.entries()[k % t.values.entries().len()];
        tables.iter().zip(factors).map(|(t, factor)| factor * entry(t)).sum()
    });
    let entries: Vec<f64> = entries.collect();
    let longest = tables.iter().find(|t| t.values.entries().len() == most);
    let shape = longest.map_or_else(|| vec![0, columns], |t| t.values.shape().to_vec());
    Values::new(shape, entries).ok_or_else(|| "tables of several shapes for one element".into())
}

/// `p2_d0` becomes `p2_s0`.
fn renamed(name: &str, axis: usize) -> String {
    let stem = name.strip_suffix(&format!("_d{axis}")).unwrap_or(name);
    format!("{stem}_s{axis}")
}
