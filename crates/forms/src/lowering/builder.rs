//! Writing the kernel, stage by stage.

use super::graph::{Graph, Level, Op};
use super::locals::LocalVar;
use super::names::Names;
use super::needed::Needed;
use super::owned::Pair;
use super::parameters::Signature;
use super::pointwise::Known;
use super::signature::Vars;
use super::sink::temporary_type;
use super::strip_cell::StripCell;
use super::tables::Tables;
use super::tensor_order::Order;
use super::{LoweredArgument, LoweredKernel, MatrixResult, VectorResult};
use crate::form::FormError;
use crate::program::{BlockRoles, CellLoop, Roles, stage};
use crate::tabulated::{Integral, IntegralType, MathFunction, Role, Side, Table, TabulatedForm};
use kingpost_ir::{Access, Affine, Expr, InsnId, KernelBuilder, ScalarType, TableData, UpdateOp, VarId};
use kingpost_primitives::schedule::{Loop, Statement};
use std::collections::{BTreeMap, BTreeSet};

pub(super) struct Builder<'a> {
    pub(super) form: &'a TabulatedForm,
    pub(super) integrals: &'a [&'a Integral],
    pub(super) graph: &'a Graph,
    pub(super) matrix: MatrixResult,
    pub(super) vector: VectorResult,
    pub(super) cell_values: BTreeSet<usize>,
    pub(super) position_width: Option<usize>,
    pub(super) b: KernelBuilder,
    pub(super) names: Names,
    arguments: Vec<LoweredArgument>,
    pub(super) vars: Vars,
    tables: Tables,
    /// Of each space, where it is not that of its map.
    pub(super) orders: &'a [Option<Order>],
    /// Their tables.
    order_tables: BTreeMap<usize, VarId>,
    /// The outermost loop, once it is open.
    pub(super) entity: Option<Expr>,
    /// What was written, by role.
    pub(super) roles: Roles,
    /// Values that are the same at all points of a cell.
    pub(super) known: Known,
    /// The pair of an owner of rows and a cell that is the entity.
    pub(super) pair: Option<Pair>,
    /// The cell of a strip that is the entity.
    pub(super) strip: Option<StripCell>,
    /// Results that are no vectors, by output.
    sums: BTreeMap<usize, VarId>,
    /// Temporaries of nodes that were declared before they are written.
    pub(super) declared: BTreeMap<usize, VarId>,
    /// Points of the integral that is being written; 1 outside them.
    pub(super) points: usize,
    /// Type of coefficients, constants and results.
    pub(super) ty: ScalarType,
}

impl<'a> Builder<'a> {
    pub(super) fn new(
        form: &'a TabulatedForm,
        name: &str,
        integrals: &'a [&'a Integral],
        graph: &'a Graph,
        needed: &Needed,
    ) -> Result<Self, FormError> {
        let mut names = Names::default();
        names.reserve(name)?;
        let mut b = KernelBuilder::new(name);
        let ty = form.scalar.ty();
        let sets_result = match form.rank {
            1 => needed.vector == VectorResult::Entities,
            _ => needed.first && needed.matrix.is_owned(),
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
                declared.insert(*node, b.temporary(names.fresh(name), ty.part(), []));
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
            tables: Tables::new(ty.part()),
            orders: &[],
            order_tables: BTreeMap::new(),
            entity: None,
            pair: None,
            strip: None,
            roles: Roles::default(),
            known: Known::new(),
            sums: BTreeMap::new(),
            declared,
            points: 1,
            ty,
        })
    }

    pub(super) fn finish(self, integral: &Integral, points: Vec<usize>) -> Result<LoweredKernel, FormError> {
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
            origin: None,
        })
    }

    /// Starts another loop over entities, whose values are its own.
    pub(super) fn renew(&mut self) {
        self.known.clear();
        let vars = self.vars.inputs.iter_mut().map(|local| &mut local.var).chain(self.declared.values_mut());
        for var in vars {
            let old = &self.b.so_far().vars[*var];
            let (name, ty, shape) = (self.names.fresh(&old.name), old.ty, old.shape.clone());
            *var = self.b.temporary(name, ty, shape);
        }
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

    /// A new temporary of several integers.
    pub(super) fn list(&mut self, stem: &str, n: usize) -> VarId {
        let name = self.names.fresh(stem);
        self.b.temporary(name, ScalarType::I32, extents(&[n]))
    }

    pub(super) fn assign(&mut self, stem: &str, lhs: Access, rhs: Expr) -> InsnId {
        let name = self.names.fresh(stem);
        self.b.assign(name, lhs, rhs)
    }

    pub(super) fn add_to(&mut self, stem: &str, lhs: Access, rhs: Expr) -> InsnId {
        let name = self.names.fresh(stem);
        self.b.update(name, lhs, UpdateOp::Add, rhs)
    }

    /// A new temporary for a value.
    pub(super) fn scalar(&mut self, stem: &str, value: &Expr) -> Result<VarId, FormError> {
        let (name, ty) = (self.names.fresh(stem), temporary_type(self.b.so_far(), self.ty, value)?);
        Ok(self.b.temporary(name, ty, []))
    }

    /// New numbers of the type of the form.
    pub(super) fn numbers(&mut self, stem: &str, shape: &[usize]) -> VarId {
        let name = self.names.fresh(stem);
        self.b.temporary(name, self.ty, extents(shape))
    }

    /// A new result of an entity that is no vector.
    pub(super) fn sum(&mut self, output: usize, stem: &str, shape: &[usize]) -> VarId {
        let var = self.numbers(stem, shape);
        self.sums.insert(output, var);
        var
    }

    /// The result of an entity that is no vector.
    pub(super) fn sum_of(&self, output: usize) -> Result<VarId, FormError> {
        self.sums.get(&output).copied().ok_or_else(|| FormError::Internal("a term adds to no result".into()))
    }

    /// The number of a degree of freedom of a local: the entry of the map.
    pub(super) fn number(&mut self, local: &LocalVar, cell: Expr, node: Expr) -> Expr {
        let column = self.column(local, node);
        let is_vertex = self.form.functions[local.local.of].role == Role::Coordinates;
        if let Some(number) = self.pair.as_ref().and_then(|pair| pair.number(is_vertex, column.clone())) {
            return number;
        }
        let map = self.vars.maps[&local.local.space];
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
}

/// Constant extents.
pub(super) fn extents(list: &[usize]) -> Vec<Affine> {
    list.iter().map(|n| Affine::constant(*n as i64)).collect()
}
