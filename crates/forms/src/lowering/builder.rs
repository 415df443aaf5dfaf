//! Writing the kernel, stage by stage.

use super::entity::{Entities, side_suffix};
use super::graph::{Graph, Level, Op, Uses};
use super::locals::{Columns, LocalVar, Used, holding, locals, numbered, used_columns, with_component};
use super::names::Names;
use super::pointwise::{Known, emit, unknown};
use super::signature::{Needed, Signature, Vars, cell_values, used_constants};
use super::sink::StageSink;
use super::tables::Tables;
use super::tensor_order::Order;
use super::{LoweredArgument, LoweredKernel, MatrixResult, TabulatedOptions, VectorResult, owned, result};
use crate::form::FormError;
use crate::program::{BlockRoles, CellLoop, EvaluationRoles, Roles, stage};
use crate::tabulated::{
    Evaluation, Integral, IntegralType, MathFunction, Precision, Role, Side, Table, TabulatedForm,
};
use purlin_ir::{Access, Affine, Expr, InsnId, KernelBuilder, ScalarType, TableData, UpdateOp, VarId};
use purlin_primitives::schedule::{Loop, Statement};
use std::collections::{BTreeMap, BTreeSet};

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
    };
    let mut builder = Builder::new(form, name, integrals, &graph, &needed)?;
    builder.orders = orders;
    builder.roles.cell = builder.names.fresh(entities.loop_name());
    let owner = builder.vars.owned.clone();
    let count = owner.as_ref().map_or(builder.vars.entities.count, |owned| owned.count);
    let outer = builder.b.open_loop(&builder.roles.cell, Affine::constant(0), Affine::var(count));
    builder.entity = Some(Expr::from(outer));
    if let Some(owned) = &owner {
        owned::open_pairs(&mut builder, owned);
    }
    builder.gathers()?;
    builder.geometry(&uses)?;
    result::zero(&mut builder);
    let mut points = Vec::new();
    for place in 0..integrals.len() {
        points.push(builder.integral(&uses, place)?);
    }
    match &owner {
        None => result::scatter(&mut builder)?,
        Some(owned) => owned::scatter(&mut builder, owned, Expr::from(outer))?,
    }
    builder.b.close_loop();
    builder.finish(integrals[0], points)
}

fn factors(graph: &Graph, integrals: &[&Integral], k: usize) -> Vec<usize> {
    integrals[k].terms.iter().map(|t| graph.places[k][t.factor]).collect()
}

fn input_locals(
    form: &TabulatedForm,
    integrals: &[&Integral],
    graph: &Graph,
    uses: &Uses,
) -> Vec<super::locals::Local> {
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

pub(super) struct Builder<'a> {
    pub(super) form: &'a TabulatedForm,
    pub(super) integrals: &'a [&'a Integral],
    graph: &'a Graph,
    pub(super) matrix: MatrixResult,
    pub(super) vector: VectorResult,
    cell_values: BTreeSet<usize>,
    position_width: Option<usize>,
    pub(super) b: KernelBuilder,
    pub(super) names: Names,
    arguments: Vec<LoweredArgument>,
    pub(super) vars: Vars,
    tables: Tables,
    /// Of each space, where it is not that of its map.
    orders: &'a [Option<Order>],
    /// Their tables.
    order_tables: BTreeMap<usize, VarId>,
    /// The outermost loop, once it is open.
    pub(super) entity: Option<Expr>,
    /// What was written, by role.
    pub(super) roles: Roles,
    /// Values that are the same at all points of a cell.
    known: Known,
    /// The rows of an owner.
    pub(super) owned_sums: Option<VarId>,
    /// Results that are no vectors, by output.
    sums: BTreeMap<usize, VarId>,
    /// Temporaries of nodes that were declared before they are written.
    declared: BTreeMap<usize, VarId>,
    /// Points of the integral that is being written; 1 outside them.
    points: usize,
    ty: ScalarType,
}

impl<'a> Builder<'a> {
    fn new(
        form: &'a TabulatedForm,
        name: &str,
        integrals: &'a [&'a Integral],
        graph: &'a Graph,
        needed: &Needed,
    ) -> Result<Self, FormError> {
        let mut names = Names::default();
        names.reserve(name)?;
        let mut b = KernelBuilder::new(name);
        let ty = match form.scalar {
            Precision::F32 => ScalarType::F32,
            Precision::F64 => ScalarType::F64,
        };
        let sets_result = match form.rank {
            1 => needed.vector == VectorResult::Entities,
            _ => needed.first && matches!(needed.matrix, MatrixResult::OwnedRows { .. }),
        };
        let mut signature =
            Signature { b: &mut b, names: &mut names, arguments: Vec::new(), ty, sets_result };
        let vars = signature.declare(form, needed)?;
        signature.assume_coloured(form, needed, &vars);
        let arguments = signature.arguments;
        // The measure of a cell is declared with its arrays: records of tuning know a kernel by its
        // text, which this keeps.
        let mut declared = BTreeMap::new();
        for (node, name) in &graph.names {
            if graph.nodes[*node].op == Op::Math(MathFunction::Abs) && graph.level[*node] == Level::Cell {
                declared.insert(*node, b.temporary(names.fresh(name), ty, []));
            }
        }
        Ok(Self {
            form,
            integrals,
            graph,
            matrix: needed.matrix,
            vector: needed.vector,
            cell_values: needed.cell_values.clone(),
            position_width: needed.position_width,
            b,
            names,
            arguments,
            vars,
            tables: Tables::new(ty),
            orders: &[],
            order_tables: BTreeMap::new(),
            entity: None,
            owned_sums: None,
            roles: Roles::default(),
            known: Known::new(),
            sums: BTreeMap::new(),
            declared,
            points: 1,
            ty,
        })
    }

    fn finish(self, integral: &Integral, points: Vec<usize>) -> Result<LoweredKernel, FormError> {
        let kernel = self.b.finish().map_err(|e| FormError::Bug(e.to_string()))?;
        let statements = self.roles.commits.iter().map(Statement::named).collect();
        let cells = CellLoop { cell: Loop::named(&self.roles.cell), commits: statements };
        let program = self.roles.program(&kernel);
        Ok(LoweredKernel {
            kernel,
            program,
            cells,
            arguments: self.arguments,
            over: integral.over,
            subdomains: integral.subdomains.clone(),
            points,
            matrix: self.matrix,
            vector: self.vector,
        })
    }

    /// The counter of the outermost loop.
    pub(super) fn entity(&self) -> Expr {
        self.entity.clone().unwrap_or(Expr::Int(0))
    }

    /// The cell of a side.
    pub(super) fn cell(&self, side: Option<Side>) -> Expr {
        self.entity.clone().map_or(Expr::Int(0), |entity| self.vars.entities.cell(entity, side))
    }

    /// Tags an instruction with its stage and function; returns its name.
    pub(super) fn label(&mut self, insn: InsnId, stage: &str, function: Option<&str>) -> String {
        self.b.label(insn, stage);
        if let Some(name) = function {
            self.b.label(insn, format!("{}{name}", stage::OF));
        }
        self.b.so_far().insns[insn].name.clone()
    }

    /// Opens a loop over `n` values; returns its name and its counter.
    pub(super) fn loop_over(&mut self, stem: &str, n: usize) -> (String, Expr) {
        let name = self.names.fresh(stem);
        let iname = self.b.open_loop(&name, Affine::constant(0), Affine::constant(n as i64));
        (name, Expr::from(iname))
    }

    /// The roles of the quadrature loop that is being written.
    pub(super) fn block(&mut self) -> &mut BlockRoles {
        if self.roles.blocks.is_empty() {
            self.roles.blocks.push(BlockRoles::default());
        }
        let last = self.roles.blocks.len() - 1;
        &mut self.roles.blocks[last]
    }

    /// Opens a loop over `n` values, if they are more than one; gives whether it did, and the counter.
    pub(super) fn loop_of(&mut self, stem: &str, n: usize) -> (bool, Expr) {
        match n {
            1 => (false, Expr::Int(0)),
            _ => (true, self.loop_over(stem, n).1),
        }
    }

    /// Closes the loop that [`Builder::loop_of`] opened, if it did.
    pub(super) fn close_loop_of(&mut self, opened: bool) {
        if opened {
            self.b.close_loop();
        }
    }

    /// Opens a loop over as many values as a parameter says.
    pub(super) fn loop_to(&mut self, stem: &str, end: Affine) {
        let name = self.names.fresh(stem);
        self.b.open_loop(&name, Affine::constant(0), end);
    }

    /// A new temporary that is an integer.
    pub(super) fn integer(&mut self, stem: &str) -> VarId {
        let name = self.names.fresh(stem);
        self.b.temporary(name, ScalarType::I32, [])
    }

    pub(super) fn assign(&mut self, stem: &str, lhs: Access, rhs: Expr) -> InsnId {
        let name = self.names.fresh(stem);
        self.b.assign(name, lhs, rhs)
    }

    pub(super) fn add_to(&mut self, stem: &str, lhs: Access, rhs: Expr) -> InsnId {
        let name = self.names.fresh(stem);
        self.b.update(name, lhs, UpdateOp::Add, rhs)
    }

    /// A new temporary of reals.
    pub(super) fn scalar(&mut self, stem: &str) -> VarId {
        let name = self.names.fresh(stem);
        self.b.temporary(name, self.ty, [])
    }

    /// A new result of an entity that is no vector.
    pub(super) fn sum(&mut self, output: usize, stem: &str, shape: &[usize]) -> VarId {
        let name = self.names.fresh(stem);
        let var = self.b.temporary(name, self.ty, result::extents(shape));
        self.sums.insert(output, var);
        var
    }

    /// The result of an entity that is no vector.
    pub(super) fn sum_of(&self, output: usize) -> Result<VarId, FormError> {
        self.sums.get(&output).copied().ok_or_else(|| FormError::Internal("a term adds to no result".into()))
    }

    fn gathers(&mut self) -> Result<(), FormError> {
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
        let cell = self.cell(data.side);
        let (_, node) = self.loop_over(&stem, data.columns.count);
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
        self.b.close_loop();
    }

    /// The number of a degree of freedom of a local: the entry of the map.
    pub(super) fn number(&mut self, local: &LocalVar, cell: Expr, node: Expr) -> Expr {
        let map = self.vars.maps[&local.local.space];
        let column = self.column(local, node);
        Expr::load(map, [cell, column])
    }

    /// The column of the map of a degree of freedom of a local.
    pub(super) fn column(&mut self, local: &LocalVar, node: Expr) -> Expr {
        let (space, column) = (local.local.space, local.local.columns.column(node));
        let Some(order) = self.orders.get(space).and_then(Option::as_ref) else { return column };
        let (b, names, stem) = (&mut self.b, &mut self.names, &self.form.spaces[space].name);
        let table = *self.order_tables.entry(space).or_insert_with(|| {
            let columns = TableData::int(order.iter().map(|k| *k as i64));
            b.table(names.fresh(&format!("{stem}_order")), ScalarType::I32, [order.len()], columns)
        });
        Expr::load(table, [column])
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

    /// An entry of a table at a point of the entity.
    pub(super) fn entry(&mut self, table: &Table, side: Option<Side>, q: Expr, dof: Expr) -> Expr {
        let oriented = table.permutations.is_some();
        // without a side, any facet serves: all are equal
        let side = side.or(self.vars.entities.kind.sides()[0]);
        let leading = self.entity.as_ref().map(|e| self.vars.entities.leading(e, side, oriented));
        let [.., n, dofs] = *table.values.shape() else { return Expr::from(0.0) };
        let (points, entries) = (self.points, table.values.entries());
        let repeated = n == 1 && points > 1 && self.vars.entities.kind.over == IntegralType::Cell;
        let var = match repeated {
            // strategies cut tables in tiles of points
            true => self.table(&table.name, &[points, dofs], &entries.repeat(points)),
            false => self.table(&table.name, table.values.shape(), entries),
        };
        let q = if n < points && !repeated { Expr::Int(0) } else { q };
        let index: Vec<Expr> = leading.unwrap_or_default().into_iter().chain([q, dof]).collect();
        Expr::load(var, index)
    }

    /// A table by its entries.
    pub(super) fn table(&mut self, stem: &str, shape: &[usize], entries: &[f64]) -> VarId {
        self.tables.table(&mut self.b, &mut self.names, stem, shape, entries)
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
    fn accumulator(&mut self, stem: &str, roles: &mut EvaluationRoles) -> VarId {
        let name = self.names.fresh(stem);
        let insn_name = self.names.fresh(&format!("init_{name}"));
        let var = self.b.temporary(name, self.ty, []);
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
            vars.push((self.accumulator(&name, &mut roles), name));
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
