//! The results of an entity: set to zero, added to at each point, and added to the output.
//!
//! A functional is a number, a linear form a vector for each group of columns, and a bilinear form
//! a matrix whose rows and columns are those of all sides of the entity.

use super::builder::Builder;
use super::entity::{Entities, side_index};
use super::locals::{Columns, Local, LocalVar, Used, holding, locals, numbered, with_component};
use super::needed::matrix_extents;
use super::signature::Places;
use super::states;
use super::strip_cell::StripCell;
use super::{MatrixResult, TabulatedOptions, VectorResult};
use crate::form::FormError;
use crate::program::{ProductRoles, ResultRoles, SumRoles, stage};
use crate::tabulated::{Integral, IntegralType, TabulatedForm, Term, TermArgument};
use kingpost_ir::{Access, Affine, BinaryOp, Expr, VarId};
use std::collections::BTreeSet;

/// The columns of an argument of a term.
fn columns(integral: &Integral, argument: &TermArgument) -> Columns {
    Columns::new(argument.offset, argument.stride, integral.tables[argument.table].dofs())
}

/// Whether results are vectors.
fn are_vectors(form: &TabulatedForm, matrix: MatrixResult) -> bool {
    match form.rank {
        1 => true,
        2 => matrix == MatrixResult::Diagonal,
        _ => false,
    }
}

/// Whether a term adds to the diagonal.
fn is_on_diagonal(form: &TabulatedForm, integral: &Integral, term: &Term) -> Result<bool, FormError> {
    let [test, trial] = &term.arguments[..] else { return Ok(true) };
    let (rows, cols) = (columns(integral, test), columns(integral, trial));
    let set = |c: Columns| (0..c.count).map(move |i| c.offset + c.stride * i);
    if rows == cols && test.component == trial.component {
        return Ok(true);
    }
    if test.component != trial.component || !set(rows).any(|r| set(cols).any(|c| r == c)) {
        return Ok(false);
    }
    let name = &form.outputs[term.output].name;
    Err(FormError::Discretisation(format!(
        "the diagonal of `{name}`: found test and trial functions that share some columns, needed all or none; \
         ask for the matrices of cells"
    )))
}

/// Places of the outputs that integrals add to; of integrals that add nothing, all of them.
pub(super) fn outputs_of(form: &TabulatedForm, integrals: &[&Integral]) -> BTreeSet<usize> {
    let outputs: BTreeSet<usize> = integrals.iter().flat_map(|i| i.terms.iter().map(|t| t.output)).collect();
    if outputs.is_empty() { (0..form.outputs.len()).collect() } else { outputs }
}

/// The vectors of an entity.
pub(super) fn locals_of(
    form: &TabulatedForm,
    integrals: &[&Integral],
    options: &TabulatedOptions,
) -> Result<Vec<Local>, FormError> {
    let matrix = options.matrix;
    let mut used: Vec<Used> = Vec::new();
    let space = |k: usize| form.outputs[k].spaces.first().copied().unwrap_or(0);
    if form.rank == 2 && matrix == MatrixResult::Diagonal {
        check_diagonal(form, integrals)?;
    }
    if are_vectors(form, matrix) {
        for (integral, term) in integrals.iter().flat_map(|i| i.terms.iter().map(move |t| (i, t))) {
            let test = &term.arguments[0];
            let u = Used { of: term.output, side: test.side, columns: columns(integral, test) };
            if is_on_diagonal(form, integral, term)? && !used.contains(&u) {
                used.push(u);
            }
        }
        if used.is_empty() {
            let sides = integrals.first().map_or(&[None][..], |i| Entities::of(i).sides());
            let whole = |k: usize| Columns::all(&form.spaces[space(k)]);
            used.extend(outputs_of(form, integrals).into_iter().map(|of| Used {
                of,
                side: sides[0],
                columns: whole(of),
            }));
        }
        used.sort_by_key(|u| (u.of, u.side));
    }
    // an entity's vector is overwritten, all of it
    let whole = form.rank == 1 && options.vector == VectorResult::Entities;
    Ok(locals(form, &used, |k| form.outputs[k].name.clone(), space, |_| whole))
}

fn check_diagonal(form: &TabulatedForm, integrals: &[&Integral]) -> Result<(), FormError> {
    if let Some(output) = form.outputs.iter().find(|o| o.spaces[0] != o.spaces[1]) {
        let message = format!(
            "the diagonal of `{}`: found two spaces, needed one for test and trial functions",
            output.name
        );
        return Err(FormError::Discretisation(message));
    }
    if integrals.iter().any(|i| i.over == IntegralType::InteriorFacet) {
        let message = "the diagonal over interior facets: entries of both sides may be one degree of freedom, \
                       needed the matrices of facets or a sparse matrix";
        return Err(FormError::Discretisation(message.into()));
    }
    Ok(())
}

/// Sets the results of an entity to zero.
pub(super) fn zero(w: &mut Builder<'_>) {
    if are_vectors(w.form, w.matrix) {
        for local in w.vars.results.clone() {
            zero_vector(w, &local);
        }
        return;
    }
    let outputs: Vec<usize> = w.vars.outputs.keys().copied().collect();
    for output in outputs {
        let name = w.form.outputs[output].name.clone();
        let extents = match &w.vars.owned {
            None => matrix_extents(w.form, output, w.vars.entities.kind).collect(),
            Some(owned) => owned.extents(),
        };
        let var = w.sum(output, &format!("{name}_cell"), &extents);
        let (loops, index): (Vec<String>, Vec<Expr>) =
            extents.iter().map(|n| w.loop_over("i_zero", *n)).unzip();
        let insn = w.assign(&format!("zero_{name}"), Access::new(var, index), Expr::from(0.0));
        w.b.label(insn, stage::INIT);
        let zeroes = w.label(insn, stage::QUADRATURE, None);
        extents.iter().for_each(|_| w.b.close_loop());
        match loops.into_iter().next() {
            Some(zero) => {
                w.roles.results.push(ResultRoles { zero, zeroes: vec![zeroes], ..ResultRoles::default() });
            }
            None => w.roles.sums.push(SumRoles { zero: zeroes, commit: String::new() }),
        }
    }
}

fn zero_vector(w: &mut Builder<'_>, local: &LocalVar) {
    let (zero, node) = w.loop_over("i_zero", local.local.columns.count);
    let mut zeroes = Vec::new();
    for component in local.components() {
        let lhs = Access::new(local.var, with_component(node.clone(), component));
        let insn = w.assign(&numbered("zero_", &local.local.stem, component), lhs, Expr::from(0.0));
        w.b.label(insn, stage::INIT);
        zeroes.push(w.label(insn, stage::QUADRATURE, None));
    }
    w.b.close_loop();
    w.roles.results.push(ResultRoles { zero, zeroes, ..ResultRoles::default() });
}

/// Adds the products of basis functions and factors at a point.
pub(super) fn accumulate(
    w: &mut Builder<'_>,
    integral: &Integral,
    factors: &[Expr],
    q: &Expr,
) -> Result<(), FormError> {
    match (w.form.rank, are_vectors(w.form, w.matrix)) {
        (_, true) => vectors(w, integral, factors, q),
        (0, false) => {
            for (term, factor) in integral.terms.iter().zip(factors) {
                let lhs = Access::scalar(w.sum_of(term.output)?);
                let insn =
                    w.add_to(&format!("quad_{}", w.form.outputs[term.output].name), lhs, factor.clone());
                let insn = w.label(insn, stage::QUADRATURE, None);
                w.block().sums.push(insn);
            }
            Ok(())
        }
        (_, false) => matrices(w, integral, factors, q),
    }
}

/// Items by key, keys in the order of their first item.
fn grouped<K: PartialEq, T>(items: impl IntoIterator<Item = (K, T)>) -> Vec<(K, Vec<T>)> {
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    for (key, item) in items {
        match groups.iter_mut().find(|(k, _)| *k == key) {
            Some((_, list)) => list.push(item),
            None => groups.push((key, vec![item])),
        }
    }
    groups
}

fn vectors(w: &mut Builder<'_>, integral: &Integral, factors: &[Expr], q: &Expr) -> Result<(), FormError> {
    let mut terms = Vec::new();
    for (term, factor) in integral.terms.iter().zip(factors) {
        if is_on_diagonal(w.form, integral, term)? {
            let test = &term.arguments[0];
            let used = Used { of: term.output, side: test.side, columns: columns(integral, test) };
            terms.push((used, (term, factor)));
        }
    }
    for argument in terms.iter().flat_map(|(_, (term, _))| &term.arguments) {
        // declared before the loop opens
        w.entry(&integral.tables[argument.table], argument.side, Expr::Int(0), Expr::Int(0));
    }
    let groups = grouped(terms);
    for (used, list) in groups {
        let local = holding(&w.vars.results, used.of, used.side, used.columns).cloned();
        let local = local.ok_or_else(|| FormError::Internal("a term adds to no array".into()))?;
        let (rows, node) = w.loop_over("i", used.columns.count);
        let mut products = ProductRoles { rows, ..ProductRoles::default() };
        for (term, factor) in list {
            let test = &term.arguments[0];
            let component = local.component(test.component);
            let index = with_component(local.index(used.columns, node.clone()), component);
            let stem = numbered("quad_", &local.local.stem, component);
            let stem = stem + derivative_suffix(&integral.tables[test.table].name);
            let tables = term
                .arguments
                .iter()
                .map(|a| w.entry(&integral.tables[a.table], a.side, q.clone(), node.clone()));
            let product = tables.collect::<Vec<_>>().into_iter().reduce(|a, b| a * b);
            let product = product.map_or(factor.clone(), |table| table * factor.clone());
            let insn = w.add_to(&stem, Access::new(local.var, index), product);
            products.insns.push(w.label(insn, stage::QUADRATURE, None));
        }
        w.b.close_loop();
        w.block().products.push(products);
    }
    Ok(())
}

/// `_d0` of a table of derivatives, which names of instructions repeat.
fn derivative_suffix(table: &str) -> &str {
    let place = table.rfind("_d").unwrap_or(table.len());
    let digits = table.get(place + 2..).unwrap_or_default();
    let is_derivative = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if is_derivative { &table[place..] } else { "" }
}

/// Row or column of the matrix of an entity.
fn matrix_index(form: &TabulatedForm, space: usize, a: &TermArgument, columns: Columns, i: Expr) -> Expr {
    let (n, block) = (form.spaces[space].columns, form.spaces[space].block);
    let start = (side_index(a.side) * n * block + a.component) as i64;
    let column = columns.column(i);
    let row = if block == 1 { column } else { Expr::Int(block as i64) * column };
    if start == 0 { row } else { row + Expr::Int(start) }
}

fn matrices(w: &mut Builder<'_>, integral: &Integral, factors: &[Expr], q: &Expr) -> Result<(), FormError> {
    let terms = integral.terms.iter().zip(factors).filter_map(|(term, factor)| match &term.arguments[..] {
        [test, trial] => {
            let rows = (test.side, columns(integral, test));
            let cols = (trial.side, columns(integral, trial));
            Some(((term.output, rows, cols), (test, trial, factor)))
        }
        _ => None,
    });
    for ((output, (_, rows), (_, cols)), list) in grouped(terms) {
        // an owner of rows computes its own alone
        let own = w.pair.as_ref().map(|pair| pair.own.clone());
        let (rows_loop, i) = match &own {
            None => w.loop_over("i", rows.count),
            Some(dof) => (String::new(), dof.clone()),
        };
        let mut products = ProductRoles { rows: rows_loop, ..ProductRoles::default() };
        // sums over test functions first: one product for each table of the trial function
        let by_trial = list.iter().map(|(test, trial, factor)| ((test.component, *trial), (*test, *factor)));
        let mut partial = Vec::new();
        for ((component, trial), list) in grouped(by_trial) {
            let terms = list.iter().map(|(test, factor)| {
                w.entry(&integral.tables[test.table], test.side, q.clone(), i.clone()) * (*factor).clone()
            });
            let sum = terms.collect::<Vec<_>>().into_iter().reduce(|a, b| a + b).unwrap_or(Expr::from(0.0));
            let var = w.scalar("row", &sum)?;
            let insn = w.assign("set_row", Access::scalar(var), sum);
            products.partials.push(w.label(insn, stage::QUADRATURE, None));
            partial.push(((component, trial.component), (list[0].0, trial, var)));
        }
        let strip = w.strip.as_ref();
        let is_cell = strip.filter(|strip| !strip.are_weighted).map(StripCell::is_cell);
        // what the columns of the others leave is that of the owner
        let first = usize::from(strip.is_some_and(|strip| strip.are_differences));
        let (columns, j) = w.loop_over("j", cols.count - first);
        let j = if first == 0 { j } else { j + Expr::Int(first as i64) };
        products.columns = Some(columns);
        let name = w.form.outputs[output].name.clone();
        for (_, list) in grouped(partial) {
            let terms = list.iter().map(|(_, trial, var)| {
                w.entry(&integral.tables[trial.table], trial.side, q.clone(), j.clone()) * Expr::scalar(*var)
            });
            let sum = terms.collect::<Vec<_>>().into_iter().reduce(|a, b| a + b).unwrap_or(Expr::from(0.0));
            let (test, trial, _) = list[0];
            let spaces = &w.form.outputs[output].spaces;
            let row = match &own {
                None => matrix_index(w.form, spaces[0], test, rows, i.clone()),
                Some(_) => Expr::Int(test.component as i64),
            };
            let col = matrix_index(w.form, spaces[1], trial, cols, j.clone());
            let lhs = Access::new(w.sum_of(output)?, [row, col]);
            let insn = w.add_to(&format!("quad_{name}"), lhs, sum);
            w.b.insn_mut(insn).predicate.clone_from(&is_cell);
            products.insns.push(w.label(insn, stage::QUADRATURE, None));
        }
        w.b.close_loop();
        if own.is_none() {
            w.b.close_loop();
        }
        w.block().products.push(products);
    }
    Ok(())
}

/// Adds the results of an entity to the outputs.
pub(super) fn scatter(w: &mut Builder<'_>) -> Result<(), FormError> {
    if are_vectors(w.form, w.matrix) {
        for (place, local) in w.vars.results.clone().iter().enumerate() {
            if !w.form.spaces[local.local.space].transforms.is_empty() {
                states::transform_result(w, local)?;
            }
            scatter_vector(w, local, place);
        }
        return Ok(());
    }
    let outputs: Vec<(usize, VarId)> = w.vars.outputs.iter().map(|(k, v)| (*k, *v)).collect();
    for (place_of, (output, var)) in outputs.into_iter().enumerate() {
        let local = w.sum_of(output)?;
        if w.form.rank == 2 {
            states::transform_matrix(w, output, local)?;
        }
        let name = w.form.outputs[output].name.clone();
        let extents: Vec<usize> = matrix_extents(w.form, output, w.vars.entities.kind).collect();
        let (loops, index): (Vec<String>, Vec<Expr>) =
            ["i_scatter", "j_scatter"].iter().zip(&extents).map(|(stem, n)| w.loop_over(stem, *n)).unzip();
        let value = Expr::load(local, index.clone());
        let (place, predicate) = match w.vars.places.get(&output) {
            Some(places) => sparse_place(w, *places, &index),
            None if extents.is_empty() => (vec![Expr::Int(0)], None),
            None => (std::iter::once(w.entity()).chain(index).collect(), None),
        };
        let insn = w.add_to(&format!("scatter_{name}"), Access::new(var, place), value);
        w.b.insn_mut(insn).predicate = predicate;
        let insn = w.label(insn, stage::SCATTER, None);
        // each entity has a matrix, or entries, of its own
        if !matches!(w.matrix, MatrixResult::Cells | MatrixResult::Coloured) || extents.is_empty() {
            w.roles.commits.push(insn.clone());
        }
        if let Some(roles) = w.roles.sums.get_mut(place_of) {
            roles.commit.clone_from(&insn);
        }
        let mut loops = loops.into_iter();
        if let (Some(roles), Some(scatter)) = (w.roles.results.get_mut(place_of), loops.next()) {
            (roles.scatter, roles.scatter_columns) = (scatter, loops.next());
            roles.commits.push(insn);
        }
        extents.iter().for_each(|_| w.b.close_loop());
    }
    Ok(())
}

/// Where an entry of an entity's matrix stands in a sparse matrix, and the condition under which it is
/// added.
fn sparse_place(w: &mut Builder<'_>, places: Places, index: &[Expr]) -> (Vec<Expr>, Option<Expr>) {
    let [row, column] = index else { return (vec![Expr::Int(0)], None) };
    let entity = w.entity();
    match places {
        Places::Table(positions) => {
            (vec![Expr::load(positions, [entity, row.clone(), column.clone()])], None)
        }
        Places::Upper(positions) => {
            let above = Expr::binary(BinaryOp::Le, row.clone(), column.clone());
            (vec![Expr::load(positions, [entity, row.clone(), column.clone()])], Some(above))
        }
        Places::OfRow { row: of_pair, positions } => {
            let wanted = Expr::binary(BinaryOp::Eq, row.clone(), Expr::load(of_pair, [entity.clone()]));
            (vec![Expr::load(positions, [entity, column.clone()])], Some(wanted))
        }
        Places::Searched { rows, columns_of, row_starts, columns, steps } => {
            let [at, left, half, wanted] =
                ["at", "left", "half", "wanted"].map(|stem| w.integer(&format!("column_{stem}")));
            let load = |var: VarId| Expr::scalar(var);
            let row = Expr::load(rows, [entity.clone(), row.clone()]);
            let start = |row: Expr| Expr::load(row_starts, [row]);
            w.assign("search", Access::scalar(at), start(row.clone()));
            w.assign("search_in", Access::scalar(left), start(row + Expr::Int(1)) - load(at));
            let column = Expr::load(columns_of, [entity, column.clone()]);
            w.assign("search_for", Access::scalar(wanted), column);
            // the entry that is wanted stays among the `left` ones from `at` on; of one, half is none
            w.loop_to("step", Affine::var(steps));
            let halved = Expr::binary(BinaryOp::FloorDiv, load(left), Expr::Int(2));
            w.assign("halve", Access::scalar(half), halved);
            let middle = || load(at) + load(half);
            let behind = Expr::binary(BinaryOp::Le, Expr::load(columns, [middle()]), load(wanted));
            let moved = Expr::Select(Box::new(behind), Box::new(middle()), Box::new(load(at)));
            w.assign("move", Access::scalar(at), moved);
            w.assign("keep", Access::scalar(left), load(left) - load(half));
            w.b.close_loop();
            (vec![load(at)], None)
        }
    }
}

fn scatter_vector(w: &mut Builder<'_>, local: &LocalVar, place: usize) {
    let data = &local.local;
    let cell = w.cell(data.side);
    let (scatter, node) = w.loop_over("i_scatter", data.columns.count);
    let mut commits = Vec::new();
    let index = match w.vector {
        VectorResult::Assembled | VectorResult::Coloured => vec![w.number(local, cell, node.clone())],
        VectorResult::Entities => vec![cell, w.column(local, node.clone())],
    };
    for component in local.components() {
        let value = Expr::load(local.var, with_component(node.clone(), component));
        let component_of = component.map(|k| Expr::Int(k as i64));
        let lhs = Access::new(w.vars.outputs[&data.of], index.iter().cloned().chain(component_of));
        let stem = numbered("scatter_", &data.stem, component);
        let insn = match w.vector {
            VectorResult::Assembled | VectorResult::Coloured => w.add_to(&stem, lhs, value),
            VectorResult::Entities => w.assign(&stem, lhs, value),
        };
        commits.push(w.label(insn, stage::SCATTER, None));
    }
    w.b.close_loop();
    // others are added to by one cell alone
    if w.vector == VectorResult::Assembled {
        w.roles.commits.extend(commits.iter().cloned());
    }
    if let Some(roles) = w.roles.results.get_mut(place) {
        (roles.scatter, roles.commits) = (scatter, commits);
    }
}
