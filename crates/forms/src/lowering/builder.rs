//! Writing the kernel, stage by stage.

use super::LoweredForm;
use super::arguments::Argument;
use super::names::Names;
use super::pointwise::{Known, Level, Sink, Uses, emit, unknown};
use super::pull::{PulledForm, Symbol, Term};
use super::shapes::{components, jet_name, n_dofs, numbered, with_component};
use super::signature::{FieldVars, Signature, Vars, used_functions};
use super::tables::{RuleTables, TableNames};
use crate::element::Nodes;
use crate::form::{Form, FormError, Jet, Scalar, ScalarId};
use crate::program::{BlockRoles, EvaluationRoles, Roles, stage};
use purlin_ir::{Access, Affine, Expr, InsnId, KernelBuilder, MathFn, ScalarType, UpdateOp, VarId};
use std::collections::{BTreeMap, BTreeSet};

/// Writes the kernel of a form that was pulled back.
pub(super) fn build(form: PulledForm, name: &str, written: Form) -> Result<LoweredForm, FormError> {
    let dim = form.cell.dim();
    let mut roots: Vec<ScalarId> =
        form.integrals.iter().flat_map(|i| i.terms.iter().map(|t| t.factor)).collect();
    roots.push(form.determinant);
    let weight = |place: usize| Symbol::from_place(place, dim) == Symbol::Weight;
    let uses = Uses::new(&form.graph, &roots, weight);
    let mut builder = Builder::new(&form, name, &uses)?;
    builder.roles.cell = builder.names.fresh("cell");
    let end = Affine::var(builder.vars.n_cells);
    let cell = builder.b.open_loop(&builder.roles.cell, Affine::constant(0), end);
    builder.gather(cell);
    builder.geometry(&uses)?;
    builder.zero();
    let mut points = Vec::new();
    for place in 0..form.integrals.len() {
        points.push(builder.integral(&uses, place)?);
    }
    builder.scatter(cell);
    builder.b.close_loop();
    let vars = builder.vars;
    let kernel = builder.b.finish().map_err(|e| FormError::Bug(e.to_string()))?;
    let program = builder.roles.program(&kernel).map_err(|e| FormError::Bug(e.to_string()))?;
    let arguments = builder.arguments;
    let nodes = vars.maps.keys().map(|degree| Nodes::new(form.cell, *degree));
    let nodes = nodes.collect::<Result<_, _>>().map_err(|e| FormError::Bug(e.to_string()))?;
    Ok(LoweredForm {
        kernel,
        program,
        arguments,
        cell: form.cell,
        test: form.test,
        form: written,
        points,
        nodes,
    })
}

struct Builder<'a> {
    form: &'a PulledForm,
    b: KernelBuilder,
    names: Names,
    arguments: Vec<Argument>,
    vars: Vars,
    fields: Vec<FieldVars>,
    tables: TableNames,
    /// What was written, by role.
    roles: Roles,
    /// Values that are the same at all points of a cell.
    known: Known,
}

impl<'a> Builder<'a> {
    fn new(form: &'a PulledForm, name: &str, uses: &Uses) -> Result<Self, FormError> {
        let mut names = Names::default();
        names.reserve(name)?;
        let used = used_functions(form, uses);
        let user_names = used.coefficients.keys().map(|k| &form.graph.coefficients()[*k].name);
        for name in user_names {
            names.reserve(name)?;
        }
        let mut b = KernelBuilder::new(name);
        let mut signature = Signature { b: &mut b, names: &mut names, arguments: Vec::new() };
        let (vars, fields) = signature.declare(form, &used)?;
        let arguments = signature.arguments;
        Ok(Self {
            form,
            b,
            names,
            arguments,
            vars,
            fields,
            tables: TableNames::default(),
            roles: Roles::default(),
            known: Known::new(),
        })
    }

    fn dim(&self) -> usize {
        self.form.cell.dim()
    }

    /// Tags an instruction with its stage and function; returns its name.
    fn label(&mut self, insn: InsnId, stage: &str, function: Option<&str>) -> String {
        self.b.label(insn, stage);
        if let Some(name) = function {
            self.b.label(insn, format!("{}{name}", stage::OF));
        }
        self.b.so_far().insns[insn].name.clone()
    }

    /// Opens a loop over `n` values; returns its name and its counter.
    fn loop_over(&mut self, stem: &str, n: usize) -> (String, Expr) {
        let name = self.names.fresh(stem);
        let iname = self.b.open_loop(&name, Affine::constant(0), Affine::constant(n as i64));
        (name, Expr::from(iname))
    }

    /// The roles of the quadrature loop that is being written.
    fn block(&mut self) -> &mut BlockRoles {
        if self.roles.blocks.is_empty() {
            self.roles.blocks.push(BlockRoles::default());
        }
        let last = self.roles.blocks.len() - 1;
        &mut self.roles.blocks[last]
    }

    fn assign(&mut self, stem: &str, lhs: Access, rhs: Expr) -> InsnId {
        let name = self.names.fresh(stem);
        self.b.assign(name, lhs, rhs)
    }

    fn add_to(&mut self, stem: &str, lhs: Access, rhs: Expr) -> InsnId {
        let name = self.names.fresh(stem);
        self.b.update(name, lhs, UpdateOp::Add, rhs)
    }

    fn gather(&mut self, cell: purlin_ir::InameId) {
        let (coordinates, map, vertices) =
            (self.vars.coordinates, self.vars.cell_vertices, self.vars.vertices);
        let (_, vertex) = self.loop_over("i_vertex", self.dim() + 1);
        for axis in 0..self.dim() {
            let number = Expr::load(map, [cell.into(), vertex.clone()]);
            let value = Expr::load(coordinates, [number, Expr::Int(axis as i64)]);
            let lhs = Access::new(vertices, [vertex.clone(), Expr::Int(axis as i64)]);
            let insn = self.assign(&format!("gather_x{axis}"), lhs, value);
            let insn = self.label(insn, stage::GATHER, Some("x"));
            self.roles.gathers.push(insn);
        }
        self.b.close_loop();
        for k in 0..self.fields.len() {
            self.gather_field(cell, k);
        }
    }

    fn gather_field(&mut self, cell: purlin_ir::InameId, k: usize) {
        let FieldVars { name, space, argument, local, .. } = &self.fields[k];
        let (name, space, argument, local) = (name.clone(), *space, *argument, *local);
        let (_, node) = self.loop_over(&format!("i_gather_{name}"), n_dofs(&space));
        let number = Expr::load(self.vars.maps[&space.degree()], [cell.into(), node.clone()]);
        for component in components(&space) {
            let value = Expr::load(argument, with_component(number.clone(), component));
            let lhs = Access::new(local, with_component(node.clone(), component));
            let insn = self.assign(&numbered("gather_", &name, component), lhs, value);
            let insn = self.label(insn, stage::GATHER, Some(&name));
            self.roles.gathers.push(insn);
        }
        self.b.close_loop();
    }

    /// Everything that is the same at all points of a cell.
    fn geometry(&mut self, uses: &Uses) -> Result<(), FormError> {
        let mut known = std::mem::take(&mut self.known);
        let form = self.form;
        // |det J| is a symbol of the graph but is computed from a node of it: first what the node needs.
        let needed = below(form, &[form.determinant]);
        let determinant = uses.restricted(|k| needed.contains(&k));
        let mut sink = self.sink(stage::GEOMETRY, BTreeMap::new());
        emit(&form.graph, &determinant, Level::Cell, &form.named, &mut known, &mut sink)?;
        let written = sink.written;
        self.roles.geometry.extend(written);
        let value = value_of(form, &known, "the determinant", form.determinant)?;
        let lhs = Access::scalar(self.vars.abs_det);
        let insn = self.assign("set_abs_det", lhs, Expr::call(MathFn::Fabs, [value]));
        let insn = self.label(insn, stage::GEOMETRY, None);
        self.roles.geometry.push(insn);
        let mut sink = self.sink(stage::GEOMETRY, BTreeMap::new());
        emit(&form.graph, uses, Level::Cell, &form.named, &mut known, &mut sink)?;
        let written = sink.written;
        self.roles.geometry.extend(written);
        self.known = known;
        Ok(())
    }

    fn zero(&mut self) {
        let test = self.form.test;
        let (zero, node) = self.loop_over("i_zero", n_dofs(&test));
        self.roles.zero = zero;
        for component in components(&test) {
            let lhs = Access::new(self.vars.local_output, with_component(node.clone(), component));
            let insn = self.assign(&numbered("zero_", "y", component), lhs, Expr::from(0.0));
            self.b.label(insn, stage::INIT);
            let insn = self.label(insn, stage::QUADRATURE, None);
            self.roles.zeroes.push(insn);
        }
        self.b.close_loop();
    }

    /// The loop over the quadrature points of an integral; gives their number.
    fn integral(&mut self, uses: &Uses, place: usize) -> Result<usize, FormError> {
        let form = self.form;
        let integral = &form.integrals[place];
        if integral.terms.is_empty() {
            return Ok(0);
        }
        let scheme = integral.measure.scheme().unwrap_or_default();
        let mut tables = RuleTables::new(form.cell, integral.degree, scheme)?;
        let roots: Vec<ScalarId> = integral.terms.iter().map(|t| t.factor).collect();
        let needed: BTreeSet<usize> = below(form, &roots);
        let (quad, q) = self.loop_over("q", tables.n_points());
        self.roles.blocks.push(BlockRoles { quad, ..BlockRoles::default() });
        let mut terminals = BTreeMap::new();
        self.position(&needed, &mut tables, &q, &mut terminals)?;
        for k in 0..self.fields.len() {
            self.evaluate(k, &needed, &mut tables, &q, &mut terminals)?;
        }
        let weights = self.tables.weights(&mut self.b, &mut self.names, &tables);
        let weight = Scalar::Symbol(Symbol::Weight.place(self.dim()));
        if let Some(id) = form.graph.find(&weight) {
            terminals.insert(id, Expr::load(weights, [q.clone()]));
        }
        let factors = self.pointwise(uses, &integral.terms, &needed, terminals)?;
        self.accumulate(&integral.terms, &factors, &mut tables, &q)?;
        self.b.close_loop();
        Ok(tables.n_points())
    }

    /// The position at a point, from the vertices and the P1 basis.
    fn position(
        &mut self,
        needed: &BTreeSet<usize>,
        tables: &mut RuleTables,
        q: &Expr,
        terminals: &mut BTreeMap<ScalarId, Expr>,
    ) -> Result<(), FormError> {
        let dim = self.dim();
        let find = |axis: usize| {
            self.form.graph.find(&Scalar::Coordinate(axis)).filter(|id| needed.contains(&id.index()))
        };
        let axes: Vec<(usize, ScalarId)> = (0..dim).filter_map(|axis| Some((axis, find(axis)?))).collect();
        if axes.is_empty() {
            return Ok(());
        }
        let basis = self.tables.basis(&mut self.b, &mut self.names, tables, 1, None)?;
        let mut roles = EvaluationRoles { function: "x".into(), ..EvaluationRoles::default() };
        let vars: Vec<VarId> =
            axes.iter().map(|(axis, _)| self.accumulator(&format!("x{axis}"), &mut roles)).collect();
        let (dofs, vertex) = self.loop_over("j_x", dim + 1);
        roles.dofs = dofs;
        for ((axis, id), var) in axes.into_iter().zip(vars) {
            let table = Expr::load(basis, [q.clone(), vertex.clone()]);
            let value = Expr::load(self.vars.vertices, [vertex.clone(), Expr::Int(axis as i64)]);
            let insn = self.add_to(&format!("eval_x{axis}"), Access::scalar(var), table * value);
            roles.products.push(self.label(insn, stage::EVALUATION, Some("x")));
            terminals.insert(id, Expr::scalar(var));
        }
        self.b.close_loop();
        self.block().evaluations.push(roles);
        Ok(())
    }

    /// A scalar temporary set to zero.
    fn accumulator(&mut self, stem: &str, roles: &mut EvaluationRoles) -> VarId {
        let name = self.names.fresh(stem);
        let insn_name = self.names.fresh(&format!("init_{name}"));
        let var = self.b.temporary(name, ScalarType::F64, []);
        let insn = self.b.assign(insn_name, Access::scalar(var), Expr::from(0.0));
        roles.inits.push(self.label(insn, stage::EVALUATION, Some(&roles.function)));
        self.b.label(insn, stage::INIT);
        var
    }

    /// The jets of a function that the integral needs, in one loop over its nodes.
    fn evaluate(
        &mut self,
        k: usize,
        needed: &BTreeSet<usize>,
        tables: &mut RuleTables,
        q: &Expr,
        terminals: &mut BTreeMap<ScalarId, Expr>,
    ) -> Result<(), FormError> {
        let FieldVars { name, space, local, jets, .. } = &self.fields[k];
        let (name, space, local) = (name.clone(), *space, *local);
        let find =
            |jet: &Jet| self.form.graph.find(&Scalar::Jet(*jet)).filter(|id| needed.contains(&id.index()));
        let jets: Vec<(Jet, ScalarId)> = jets.iter().filter_map(|jet| Some((*jet, find(jet)?))).collect();
        if jets.is_empty() {
            return Ok(());
        }
        let mut vars = Vec::new();
        let mut roles = EvaluationRoles { function: name.clone(), ..EvaluationRoles::default() };
        for (jet, _) in &jets {
            let basis =
                self.tables.basis(&mut self.b, &mut self.names, tables, space.degree(), jet.axis())?;
            vars.push((self.accumulator(&jet_name(&name, &space, jet), &mut roles), basis));
        }
        let (dofs, node) = self.loop_over(&format!("j_{name}"), n_dofs(&space));
        roles.dofs = dofs;
        for ((jet, id), (var, basis)) in jets.into_iter().zip(vars) {
            let component = space.is_vector().then_some(jet.component);
            let value = Expr::load(local, with_component(node.clone(), component));
            let table = Expr::load(basis, [q.clone(), node.clone()]);
            let stem = format!("eval_{}", jet_name(&name, &space, &jet));
            let insn = self.add_to(&stem, Access::scalar(var), table * value);
            roles.products.push(self.label(insn, stage::EVALUATION, Some(&name)));
            terminals.insert(id, Expr::scalar(var));
        }
        self.b.close_loop();
        self.block().evaluations.push(roles);
        Ok(())
    }

    /// The factors of all terms at a point.
    fn pointwise(
        &mut self,
        uses: &Uses,
        terms: &[Term],
        needed: &BTreeSet<usize>,
        terminals: BTreeMap<ScalarId, Expr>,
    ) -> Result<Vec<Expr>, FormError> {
        let mut known = self.known.clone();
        let form = self.form;
        let mut named = form.named.clone();
        for (k, term) in terms.iter().enumerate() {
            named.entry(term.factor).or_insert_with(|| format!("e{k}"));
        }
        let uses = uses.restricted(|k| needed.contains(&k));
        let mut sink = self.sink(stage::POINTWISE, terminals);
        emit(&form.graph, &uses, Level::Point, &named, &mut known, &mut sink)?;
        let written = sink.written;
        self.block().pointwise = written;
        terms.iter().map(|term| value_of(form, &known, "a factor", term.factor)).collect()
    }

    fn accumulate(
        &mut self,
        terms: &[Term],
        factors: &[Expr],
        tables: &mut RuleTables,
        q: &Expr,
    ) -> Result<(), FormError> {
        let test = self.form.test;
        let mut bases = Vec::new();
        for term in terms {
            bases.push(self.tables.basis(&mut self.b, &mut self.names, tables, test.degree(), term.axis)?);
        }
        let (rows, node) = self.loop_over("i", n_dofs(&test));
        self.block().rows = rows;
        for ((term, factor), basis) in terms.iter().zip(factors).zip(bases) {
            let component = test.is_vector().then_some(term.component);
            let lhs = Access::new(self.vars.local_output, with_component(node.clone(), component));
            let stem = numbered("quad_", "y", component);
            let stem = term.axis.map_or(stem.clone(), |axis| format!("{stem}_d{axis}"));
            let insn = self.add_to(&stem, lhs, Expr::load(basis, [q.clone(), node.clone()]) * factor.clone());
            let insn = self.label(insn, stage::QUADRATURE, None);
            self.block().products.push(insn);
        }
        self.b.close_loop();
        Ok(())
    }

    fn scatter(&mut self, cell: purlin_ir::InameId) {
        let test = self.form.test;
        let (scatter, node) = self.loop_over("i_scatter", n_dofs(&test));
        self.roles.scatter = scatter;
        let number = Expr::load(self.vars.maps[&test.degree()], [cell.into(), node.clone()]);
        for component in components(&test) {
            let value = Expr::load(self.vars.local_output, with_component(node.clone(), component));
            let lhs = Access::new(self.vars.output, with_component(number.clone(), component));
            let insn = self.add_to(&numbered("scatter_", "y", component), lhs, value);
            let insn = self.label(insn, stage::SCATTER, None);
            self.roles.commits.push(insn);
        }
        self.b.close_loop();
    }

    fn sink(&mut self, stage: &'static str, terminals: BTreeMap<ScalarId, Expr>) -> StageSink<'_> {
        StageSink {
            form: self.form,
            b: &mut self.b,
            names: &mut self.names,
            vars: &self.vars,
            stage,
            terminals,
            written: Vec::new(),
        }
    }
}

/// The value of a node that was emitted.
fn value_of(form: &PulledForm, known: &Known, what: &str, node: ScalarId) -> Result<Expr, FormError> {
    match known.get(&node) {
        Some((value, _)) => Ok(value.clone()),
        None => Err(unknown(what, &form.graph.node(node))),
    }
}

/// Writes the instructions of the geometry and pointwise stages.
struct StageSink<'b> {
    form: &'b PulledForm,
    b: &'b mut KernelBuilder,
    names: &'b mut Names,
    vars: &'b Vars,
    stage: &'static str,
    terminals: BTreeMap<ScalarId, Expr>,
    /// The instructions.
    written: Vec<String>,
}

impl Sink for StageSink<'_> {
    fn terminal(&mut self, node: &Scalar) -> Result<Expr, FormError> {
        if let Some(value) = self.form.graph.find(node).and_then(|id| self.terminals.get(&id)) {
            return Ok(value.clone());
        }
        let none = || unknown("a terminal", node);
        let dim = self.form.cell.dim();
        Ok(match node {
            Scalar::Literal(bits) => Expr::from(bits.value()),
            Scalar::Constant(place, component) => {
                Expr::scalar(*self.vars.constants.get(&(*place, *component)).ok_or_else(none)?)
            }
            Scalar::Symbol(place) => match Symbol::from_place(*place, dim) {
                Symbol::Vertex(vertex, axis) => {
                    Expr::load(self.vars.vertices, [Expr::Int(vertex as i64), Expr::Int(axis as i64)])
                }
                Symbol::Measure => Expr::scalar(self.vars.abs_det),
                Symbol::Weight => return Err(none()),
            },
            // Jets, coordinates and weights are among the terminals of their stage.
            Scalar::Coordinate(_)
            | Scalar::Jet(_)
            | Scalar::Variable(..)
            | Scalar::Negate(_)
            | Scalar::Add(..)
            | Scalar::Subtract(..)
            | Scalar::Multiply(..)
            | Scalar::Divide(..)
            | Scalar::Power(..)
            | Scalar::Math(..)
            | Scalar::Conditional(..) => return Err(none()),
        })
    }

    fn assign(&mut self, name: Option<&str>, value: Expr) -> Expr {
        let name = self.names.fresh(name.unwrap_or("t"));
        let insn_name = self.names.fresh(&format!("set_{name}"));
        let var = self.b.temporary(name, ScalarType::F64, []);
        let insn = self.b.assign(&insn_name, Access::scalar(var), value);
        self.b.label(insn, self.stage);
        self.written.push(insn_name);
        Expr::scalar(var)
    }
}

/// The places of the nodes at and below some roots.
fn below(form: &PulledForm, roots: &[ScalarId]) -> BTreeSet<usize> {
    form.graph.below(roots, |_| false).into_iter().map(ScalarId::index).collect()
}
