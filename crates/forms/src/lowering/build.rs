//! The kernels of a form: one for the integrals over the same entities.

use super::builder::Builder;
use super::entity::{Entities, side_suffix};
use super::graph::{Graph, Level, Op, Uses};
use super::kernel::Origin;
use super::locals::{
    Columns, Local, LocalVar, Used, holding, locals, numbered, used_columns, with_component,
};
use super::needed::{Needed, cell_values, used_constants};
use super::pointwise::{emit, unknown};
use super::sink::StageSink;
use super::tensor_order::Order;
use super::{
    LoweredKernel, MatrixResult, TabulatedOptions, VectorResult, known_rows, pairs, result, strips,
    symmetric, tensor_order,
};
use crate::form::FormError;
use crate::program::{BlockRoles, EvaluationRoles, stage};
use crate::tabulated::{Evaluation, Integral, IntegralType, Role, TabulatedForm, Term};
use kingpost_ir::text::suggestion;
use kingpost_ir::{Access, Affine, Expr, ScalarType, VarId};
use std::collections::{BTreeMap, BTreeSet};

/// Lowers a tabulated form: one kernel for the integrals over the same kind of entity and the same
/// parts of the mesh, in the order in which they first occur.
///
/// One kernel a kind lets the caller launch each on the entities it has, and overlap them;
/// integrals that share entities share what they gather. Nodes of squares and cubes are gathered in
/// the order of the axes, so that tables are tensor products.
///
/// # Errors
/// What has no kernel: a function that no target has, a diagonal that is none; cell values of what
/// is no coefficient, or with a vector by colours.
pub fn lower_tabulated(
    form: &TabulatedForm,
    options: &TabulatedOptions,
) -> Result<Vec<LoweredKernel>, FormError> {
    check_cell_values(form, options)?;
    let orders = tensor_order::orders(form, options);
    let ordered = tensor_order::reordered(form, &orders);
    let form = &ordered;
    let mut groups: Vec<Vec<&Integral>> = Vec::new();
    for integral in &form.integrals {
        let same =
            |first: &&Integral| (first.over, &first.subdomains) == (integral.over, &integral.subdomains);
        match groups.iter_mut().find(|g| g.first().is_some_and(same)) {
            Some(group) => group.push(integral),
            None => groups.push(vec![integral]),
        }
    }
    let stem = options.name.as_deref().unwrap_or(&form.name);
    let mut kernels: Vec<LoweredKernel> = Vec::new();
    for group in &groups {
        let name = kernel_name(stem, group);
        let parts = if options.split_results { split(group) } else { Vec::new() };
        let mut add = |name: &str, integrals: &[&Integral]| -> Result<(), FormError> {
            let first = kernels.is_empty();
            let mut kernel = build(form, name, integrals, options, &orders, first)?;
            kernel.origin = Some(Origin::new(form, name, integrals, options, first).into());
            kernels.push(kernel);
            Ok(())
        };
        if parts.len() < 2 {
            add(&name, group)?;
            continue;
        }
        for (k, part) in parts.iter().enumerate() {
            add(&format!("{name}_{k}"), &part.iter().collect::<Vec<_>>())?;
        }
    }
    if options.matrix == MatrixResult::SymmetricHalf && form.rank == 2 {
        symmetric::check(form, &kernels)?;
    }
    Ok(kernels)
}

/// Refuses cell values of a name that no coefficient has, and those of cells that are renumbered by
/// colour.
fn check_cell_values(form: &TabulatedForm, options: &TabulatedOptions) -> Result<(), FormError> {
    let first = options.cell_values.first();
    if let Some(name) = first.filter(|_| (form.rank, options.vector) == (1, VectorResult::Coloured)) {
        return Err(FormError::Discretisation(format!(
            "values of `{name}` cell by cell: found a vector by colours, each launch of which has cells of its \
             own, needed one launch over all of them; assemble it atomically, or store the vectors of entities"
        )));
    }
    let coefficients = form.functions.iter().filter(|f| f.role == Role::Coefficient);
    let known: BTreeSet<&str> = coefficients.map(|f| f.name.as_str()).collect();
    let Some(name) = options.cell_values.iter().find(|name| !known.contains(name.as_str())) else {
        return Ok(());
    };
    let hint = suggestion(name, known.iter().copied()).map(|h| format!("; {h}")).unwrap_or_default();
    let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
    let known = if known.is_empty() { "and the form has none".to_owned() } else { known.join(", ") };
    Err(FormError::Discretisation(format!(
        "values of `{name}` cell by cell: found no coefficient of this name, needed one of them: {known}{hint}"
    )))
}

/// The integrals with the terms of one sub-element of a result each.
fn split(integrals: &[&Integral]) -> Vec<Vec<Integral>> {
    let key = |integral: &Integral, term: &Term| {
        let test = term.arguments.first();
        let columns = test.map(|t| (t.offset, t.stride, integral.tables[t.table].dofs(), t.side));
        (term.output, columns)
    };
    let mut keys = Vec::new();
    for (integral, term) in integrals.iter().flat_map(|i| i.terms.iter().map(move |t| (i, t))) {
        let key = key(integral, term);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let part = |wanted: &_| -> Vec<Integral> {
        let with_own = |integral: &&Integral| {
            let mut own = Integral::clone(integral);
            own.terms.retain(|term| key(integral, term) == *wanted);
            own
        };
        integrals.iter().map(with_own).filter(|i| !i.terms.is_empty()).collect()
    };
    keys.iter().map(part).collect()
}

/// `poisson`, `poisson_exterior_facets`, `poisson_cells_1_2`.
fn kernel_name(stem: &str, integrals: &[&Integral]) -> String {
    let Some(first) = integrals.first() else { return stem.to_owned() };
    let ids = first.subdomains.iter().map(|id| format!("_{}", id.to_string().replace('-', "m")));
    let ids: String = ids.collect();
    match first.over {
        IntegralType::Cell if ids.is_empty() => stem.to_owned(),
        IntegralType::Cell => format!("{stem}_cells{ids}"),
        IntegralType::ExteriorFacet => format!("{stem}_exterior_facets{ids}"),
        IntegralType::InteriorFacet => format!("{stem}_interior_facets{ids}"),
    }
}

/// Writes the kernel of integrals over the same entities; `first` is that of the first of a form.
pub(super) fn build(
    form: &TabulatedForm,
    name: &str,
    integrals: &[&Integral],
    options: &TabulatedOptions,
    orders: &[Option<Order>],
    first: bool,
) -> Result<LoweredKernel, FormError> {
    let matrix = options.matrix;
    let summed = known_rows::summed(form, integrals, matrix);
    let integrals = &summed.iter().collect::<Vec<_>>()[..];
    let graph = Graph::new(form, integrals);
    let roots: Vec<usize> = (0..integrals.len()).flat_map(|k| factors(&graph, integrals, k)).collect();
    let uses = Uses::new(&graph, &roots);
    let entities = integrals.first().map(|i| Entities::of(i)).ok_or(FormError::Empty)?;
    let entities = entities.with_rows(form, matrix)?;
    entities.check_vectors(form, options.vector)?;
    let needed = Needed {
        entities,
        inputs: input_locals(form, integrals, &graph, &uses),
        results: result::locals_of(form, integrals, options)?,
        outputs: result::outputs_of(form, integrals),
        constants: used_constants(&graph, &uses),
        oriented: integrals.iter().flat_map(|i| &i.tables).any(|t| t.permutations.is_some()),
        matrix,
        vector: options.vector,
        cell_values: cell_values(form, options),
        first,
        position_width: options.position_width,
        is_exact: options.is_exact,
    };
    let mut builder = Builder::new(form, name, integrals, &graph, &needed)?;
    builder.orders = orders;
    let Some(owned) = builder.vars.owned.clone() else {
        builder.roles.cell = builder.names.fresh(entities.loop_name());
        let count = Affine::var(builder.vars.entities.count);
        builder.entity =
            Some(Expr::from(builder.b.open_loop(&builder.roles.cell, Affine::constant(0), count)));
        let points = builder.results_of_entity(&uses)?;
        result::scatter(&mut builder)?;
        builder.b.close_loop();
        return builder.finish(integrals[0], points);
    };
    let mut points = Vec::new();
    for (kind, owners) in owned.owners.iter().enumerate() {
        if kind > 0 {
            builder.renew();
        }
        if owned.are_strips {
            let strip = strips::open(&mut builder, &owned, owners, &uses)?;
            builder.geometry(&uses)?;
            points = builder.points_of(&uses)?;
            strips::scatter(&mut builder, &owned, &strip);
        } else {
            pairs::open_pairs(&mut builder, &owned, owners);
            points = builder.results_of_entity(&uses)?;
            pairs::scatter(&mut builder, &owned)?;
        }
    }
    builder.finish(integrals[0], points)
}

fn factors(graph: &Graph, integrals: &[&Integral], k: usize) -> Vec<usize> {
    integrals[k].terms.iter().map(|t| graph.places[k][t.factor]).collect()
}

fn input_locals(form: &TabulatedForm, integrals: &[&Integral], graph: &Graph, uses: &Uses) -> Vec<Local> {
    let mut used = used_columns(form, integrals, graph, uses);
    let position = form.functions.iter().position(|f| f.role == Role::Coordinates);
    used.dedup();
    locals(
        form,
        &used,
        |k| form.functions[k].name.clone(),
        |k| form.functions[k].space,
        |k| Some(k) == position,
    )
}

impl Builder<'_> {
    /// The results of the entity; gives the points of each integral.
    fn results_of_entity(&mut self, uses: &Uses) -> Result<Vec<usize>, FormError> {
        self.gathers()?;
        self.geometry(uses)?;
        result::zero(self);
        self.points_of(uses)
    }

    /// Adds to the results at the points of each integral; gives how many these are.
    fn points_of(&mut self, uses: &Uses) -> Result<Vec<usize>, FormError> {
        (0..self.integrals.len()).map(|place| self.integral(uses, place)).collect()
    }

    pub(super) fn gathers(&mut self) -> Result<(), FormError> {
        for local in self.vars.inputs.clone() {
            self.gather(&local);
            if !self.form.spaces[local.local.space].transforms.is_empty() {
                super::states::transform_input(self, &local)?;
            }
        }
        Ok(())
    }

    fn gather(&mut self, local: &LocalVar) {
        let (data, form) = (&local.local, self.form);
        let function = &form.functions[data.of];
        let space = &form.spaces[data.space];
        let are_vertices = function.role == Role::Coordinates
            && form.cell.is_simplex()
            && space.columns == form.cell.n_vertices();
        let stem = match are_vertices {
            true => format!("i_vertex{}", side_suffix(data.side)),
            false => format!("i_gather_{}", data.stem),
        };
        let (_, node) = self.loop_over(&stem, data.columns.count);
        self.gather_node(local, &node);
        self.b.close_loop();
    }

    /// Gathers what a function has at a node.
    pub(super) fn gather_node(&mut self, local: &LocalVar, node: &Expr) {
        let data = &local.local;
        let function = &self.form.functions[data.of];
        let cell = self.cell(data.side);
        let at = match self.cell_values.contains(&data.of) {
            true => vec![cell, self.column(local, node.clone())],
            false => vec![self.number(local, cell, node.clone())],
        };
        for component in local.components() {
            let argument = self.vars.functions[&data.of];
            // an entry of a wider array has an axis of components also where one is read
            let wide = function.role == Role::Coordinates && self.position_width.is_some_and(|w| w > 1);
            let given = component.or(wide.then_some(0));
            let component_index = given.map(|c| Expr::Int(c as i64));
            let value = Expr::load(argument, at.iter().cloned().chain(component_index));
            let lhs = Access::new(local.var, with_component(node.clone(), component));
            let insn = self.assign(&numbered("gather_", &data.stem, component), lhs, value);
            let insn = self.label(insn, stage::GATHER, Some(&data.stem));
            self.roles.gathers.push(insn);
        }
    }

    /// Everything that is the same at all points of a cell.
    fn geometry(&mut self, uses: &Uses) -> Result<(), FormError> {
        let mut known = std::mem::take(&mut self.known);
        let graph = self.graph;
        let terminals = self.table_entries(uses, Level::Cell, None)?;
        let mut sink = self.sink(stage::GEOMETRY, terminals);
        emit(graph, uses, Level::Cell, &graph.names, &mut known, &mut sink)?;
        let written = sink.written;
        self.roles.geometry.extend(written);
        self.known = known;
        Ok(())
    }

    /// The same of an owner before vertices come to it, as far as some of them do not change it, by
    /// the places that nodes depend on. What depends on none of `all` is known from here on.
    pub(super) fn geometry_that_stays(
        &mut self,
        uses: &Uses,
        depends: &[u32],
        all: u32,
    ) -> Result<(), FormError> {
        self.known.clear();
        self.geometry(&uses.restricted(|k| depends[k] & all != all))?;
        let known = std::mem::take(&mut self.known);
        for (node, (value, _)) in &known {
            if let Expr::Load(access) = value
                && access.index.is_empty()
                && depends[*node] != 0
                && !self.graph.nodes[*node].operands.is_empty()
            {
                self.declared.insert(*node, access.var);
            }
        }
        self.known = known.into_iter().filter(|(node, _)| depends[*node] == 0).collect();
        Ok(())
    }

    /// Entries of tables without degrees of freedom, by node.
    fn table_entries(
        &mut self,
        uses: &Uses,
        level: Level,
        q: Option<&Expr>,
    ) -> Result<BTreeMap<usize, Expr>, FormError> {
        let mut entries = BTreeMap::new();
        let (graph, integrals) = (self.graph, self.integrals);
        for (k, node) in graph.nodes.iter().enumerate() {
            if !uses.is_needed(k) || graph.level[k] != level {
                continue;
            }
            if let Op::Table(integral, place, side) = node.op {
                let table = &integrals[integral].tables[place];
                let point = q.cloned().unwrap_or(Expr::Int(0));
                entries.insert(k, self.entry(table, side, point, Expr::Int(0)));
            }
            if let Op::FacetValue(integral, place) = node.op {
                entries.insert(k, self.facet_value(integrals[integral], place)?);
            }
        }
        Ok(entries)
    }

    /// A sum of degrees of freedom times entries of a table that has one row a facet.
    fn facet_value(&mut self, integral: &Integral, place: usize) -> Result<Expr, FormError> {
        let e = &integral.evaluations[place];
        let table = &integral.tables[e.table];
        let columns = Columns::new(e.offset, e.stride, table.dofs());
        let local = holding(&self.vars.inputs, e.function, e.side, columns).cloned();
        let local = local.ok_or_else(|| FormError::Internal("a facet's value reads no array".into()))?;
        let mut sum: Option<Expr> = None;
        let entries = table.values.entries();
        for i in
            (0..table.dofs()).filter(|i| entries.iter().skip(*i).step_by(table.dofs()).any(|v| *v != 0.0))
        {
            let index = local.index(columns, Expr::Int(i as i64));
            let index = if columns == local.local.columns {
                index
            } else {
                Expr::Int((e.offset + e.stride * i) as i64)
            };
            let load = Expr::load(local.var, with_component(index, local.component(e.component)));
            let product = self.entry(table, e.side, Expr::Int(0), Expr::Int(i as i64)) * load;
            sum = Some(sum.map_or(product.clone(), |s| s + product));
        }
        Ok(sum.unwrap_or(Expr::from(0.0)))
    }

    /// The loop over the quadrature points of an integral; gives their number.
    fn integral(&mut self, uses: &Uses, place: usize) -> Result<usize, FormError> {
        let (graph, integral) = (self.graph, self.integrals[place]);
        if integral.terms.is_empty() {
            return Ok(0);
        }
        let roots = factors(graph, self.integrals, place);
        let needed: BTreeSet<usize> = graph.below(&roots);
        let own = uses.restricted(|k| needed.contains(&k));
        let n_points = integral.weights.len();
        self.points = n_points;
        let (quad, q) = self.loop_over("q", n_points);
        self.roles.blocks.push(BlockRoles { quad, ..BlockRoles::default() });
        let mut terminals = self.evaluate(place, &own, &q)?;
        let weights = self.table("weights", &[n_points], &integral.weights);
        terminals.extend(self.table_entries(&own, Level::Point, Some(&q))?);
        if let Some(k) = graph.nodes.iter().position(|n| n.op == Op::Weight(place)) {
            terminals.insert(k, Expr::load(weights, [q.clone()]));
        }
        let factors = self.pointwise(&own, &roots, terminals)?;
        result::accumulate(self, integral, &factors, &q)?;
        self.b.close_loop();
        Ok(n_points)
    }

    /// A scalar temporary set to zero.
    fn accumulator(&mut self, stem: &str, ty: ScalarType, roles: &mut EvaluationRoles) -> VarId {
        let name = self.names.fresh(stem);
        let insn_name = self.names.fresh(&format!("init_{name}"));
        let var = self.b.temporary(name, ty, []);
        let insn = self.b.assign(insn_name, Access::scalar(var), Expr::from(0.0));
        roles.inits.push(self.label(insn, stage::EVALUATION, Some(&roles.function)));
        self.b.label(insn, stage::INIT);
        var
    }

    /// The evaluations that an integral needs, those of the same columns in one loop.
    fn evaluate(
        &mut self,
        place: usize,
        needed: &Uses,
        q: &Expr,
    ) -> Result<BTreeMap<usize, Expr>, FormError> {
        let integral = self.integrals[place];
        let mut terminals = BTreeMap::new();
        let mut groups: Vec<(Used, Vec<(usize, &Evaluation)>)> = Vec::new();
        for (k, e) in integral.evaluations.iter().enumerate() {
            let Some(node) = self.graph.nodes.iter().position(|n| n.op == Op::Evaluation(place, k)) else {
                continue;
            };
            if !needed.is_needed(node) {
                continue;
            }
            let columns = Columns::new(e.offset, e.stride, integral.tables[e.table].dofs());
            let used = Used { of: e.function, side: e.side, columns };
            match groups.iter_mut().find(|(u, _)| *u == used) {
                Some((_, list)) => list.push((node, e)),
                None => groups.push((used, vec![(node, e)])),
            }
        }
        for (used, list) in groups {
            self.evaluate_columns(integral, used, &list, q, &mut terminals)?;
        }
        Ok(terminals)
    }

    fn evaluate_columns(
        &mut self,
        integral: &Integral,
        used: Used,
        list: &[(usize, &Evaluation)],
        q: &Expr,
        terminals: &mut BTreeMap<usize, Expr>,
    ) -> Result<(), FormError> {
        let local = holding(&self.vars.inputs, used.of, used.side, used.columns).cloned();
        let local = local.ok_or_else(|| FormError::Internal("an evaluation reads no array".into()))?;
        let stem = local.local.stem.clone();
        let mut roles = EvaluationRoles { function: stem.clone(), ..EvaluationRoles::default() };
        let mut vars = Vec::new();
        for (_, e) in list {
            // declared before the loop opens
            self.entry(&integral.tables[e.table], e.side, Expr::Int(0), Expr::Int(0));
            let name = evaluation_name(&stem, &local, e);
            vars.push((self.accumulator(&name, self.b.so_far().vars[local.var].ty, &mut roles), name));
        }
        let (dofs, node) = self.loop_over(&format!("j_{stem}"), used.columns.count);
        roles.dofs = dofs;
        for ((id, e), (var, name)) in list.iter().zip(vars) {
            let index = with_component(local.index(used.columns, node.clone()), local.component(e.component));
            let value = Expr::load(local.var, index);
            let table = self.entry(&integral.tables[e.table], e.side, q.clone(), node.clone());
            let insn = self.add_to(&format!("eval_{name}"), Access::scalar(var), table * value);
            roles.products.push(self.label(insn, stage::EVALUATION, Some(&stem)));
            terminals.insert(*id, Expr::scalar(var));
        }
        self.b.close_loop();
        self.block().evaluations.push(roles);
        Ok(())
    }

    /// The factors of all terms at a point.
    fn pointwise(
        &mut self,
        uses: &Uses,
        roots: &[usize],
        terminals: BTreeMap<usize, Expr>,
    ) -> Result<Vec<Expr>, FormError> {
        let mut known = self.known.clone();
        let graph = self.graph;
        let mut named = graph.names.clone();
        for (k, root) in roots.iter().enumerate() {
            named.entry(*root).or_insert_with(|| format!("e{k}"));
        }
        let mut sink = self.sink(stage::POINTWISE, terminals);
        emit(graph, uses, Level::Point, &named, &mut known, &mut sink)?;
        let written = sink.written;
        self.block().pointwise = written;
        let value = |root: &usize| match known.get(root) {
            Some((value, _)) => Ok(value.clone()),
            None => Err(unknown("a factor", &graph.nodes[*root].op)),
        };
        roots.iter().map(value).collect()
    }

    fn sink(&mut self, stage: &'static str, terminals: BTreeMap<usize, Expr>) -> StageSink<'_> {
        StageSink {
            b: &mut self.b,
            names: &mut self.names,
            vars: &self.vars,
            ty: self.ty,
            declared: &self.declared,
            strip: self.strip.as_ref(),
            stage,
            terminals,
            written: Vec::new(),
        }
    }
}

/// The name that was given, or else one of the function, its component and its place.
fn evaluation_name(stem: &str, local: &LocalVar, e: &Evaluation) -> String {
    let side = side_suffix(e.side);
    match &e.name {
        Some(name) => format!("{name}{side}"),
        None => numbered("", stem, local.component(e.component)) + "_q",
    }
}
