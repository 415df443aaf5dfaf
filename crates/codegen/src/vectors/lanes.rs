//! Statements of a loop over lanes, written for all lanes of a vector.

use super::offset::{Known, factor, joined, mentions, reads, slope, type_of};
use super::symbols::{Space, Symbols};
use crate::ast::{Block, Declare, Expr, Extent, For, LoopKind, Name, Op, Place, Stmt};
use crate::names::Names;
use crate::notes::NoVectors;
use crate::target::Vectors;
use kingpost_ir::multiples::{of_constant, of_sum};
use kingpost_ir::{InsnId, ScalarType, UpdateOp};
use std::collections::{BTreeMap, BTreeSet};

/// A loop in vectors.
pub(super) struct Written {
    pub(super) code: Block,
    /// Accesses that became vectors.
    pub(super) vectors: usize,
    /// Arrays with such accesses that have to be aligned, and to how many bytes.
    pub(super) aligned: BTreeMap<Name, u64>,
    /// The names of variables that are new.
    pub(super) names: Vec<Name>,
}

/// Writes a loop over lanes in vectors of one width.
pub(super) struct Lanes<'a> {
    target: Vectors,
    symbols: &'a Symbols,
    /// What integer variables are multiples of.
    known: &'a Known,
    names: &'a mut Names,
    /// The loop, from a number to a number.
    head: &'a For,
    width: u8,
    /// Whether one vector is the whole loop and starts at 0, so that numbers stand for the loop
    /// variable.
    single: bool,
    /// Arrays of which every lane has its own.
    per_lane: &'a BTreeSet<Name>,
    /// Variables that hold vectors.
    held: BTreeMap<Name, ScalarType>,
    /// Vectors in variables: of the statement, or of arrays that are only read.
    loaded: Vec<(Place, Name)>,
    /// All that ever were.
    new: Vec<Name>,
    vectors: usize,
    aligned: BTreeMap<Name, u64>,
    /// The first access that would be a vector if its start were known to be at a multiple.
    unaligned: Option<NoVectors>,
    /// Whether the target has all vectors that variables are to hold.
    possible: bool,
}

impl<'a> Lanes<'a> {
    pub(super) fn new(
        (target, symbols, known): (Vectors, &'a Symbols, &'a Known),
        names: &'a mut Names,
        head: &'a For,
        width: u8,
        per_lane: &'a BTreeSet<Name>,
    ) -> Self {
        let single = head.lower == Expr::int(0) && head.upper == Expr::int(width.into());
        Self {
            target,
            symbols,
            known,
            names,
            head,
            width,
            single,
            per_lane,
            held: BTreeMap::new(),
            loaded: Vec::new(),
            new: Vec::new(),
            vectors: 0,
            aligned: BTreeMap::new(),
            unaligned: None,
            possible: true,
        }
    }

    /// The loop with that body; why not, if no access would be a vector.
    pub(super) fn write(mut self, body: &Block) -> Result<Written, NoVectors> {
        let mut code = self.block(body);
        if self.vectors == 0 || !self.possible {
            self.new.iter().for_each(|name| self.names.give_back(name));
            let missing = if self.possible { NoVectors::Apart } else { NoVectors::Length };
            return Err(self.unaligned.unwrap_or(missing));
        }
        if !self.single {
            let (step, kind) = (self.width.into(), LoopKind::Sequential);
            code = vec![Stmt::For(For { step, kind, body: code, ..self.head.clone() })];
        }
        Ok(Written { code, vectors: self.vectors, aligned: self.aligned, names: self.new })
    }

    fn block(&mut self, block: &Block) -> Block {
        let mut out = Block::new();
        let known = self.loaded.len();
        for stmt in block {
            self.stmt(stmt, &mut out);
            let symbols = self.symbols;
            self.loaded.retain(|(place, _)| symbols.get(&place.name).is_some_and(|s| s.1 == Space::Input));
        }
        self.loaded.truncate(known);
        out
    }

    fn stmt(&mut self, stmt: &Stmt, out: &mut Block) {
        match stmt {
            Stmt::Declare(d) => self.declare(d, out),
            Stmt::Assign { place, op, value, origin } => self.assign(place, *op, value, *origin, out),
            Stmt::If { condition, body } if !self.differs(condition) => {
                let (condition, body) = (condition.clone(), self.block(body));
                out.push(Stmt::If { condition, body });
            }
            Stmt::For(f) if !self.differs(&f.lower) && !self.differs(&f.upper) => {
                let body = self.block(&f.body);
                out.push(Stmt::For(For { body, ..f.clone() }));
            }
            Stmt::Atomic(_) | Stmt::If { .. } | Stmt::For(_) => self.lane_by_lane(stmt.clone(), out),
            Stmt::Comment(_) | Stmt::Iteration(_) | Stmt::Barrier(_) | Stmt::Intrinsic(_) => {
                out.push(stmt.clone());
            }
        }
    }

    /// Whether an expression may have different values in different lanes.
    fn differs(&self, e: &Expr) -> bool {
        mentions(e, &self.head.name) || self.mentions_held(e)
    }

    fn mentions_held(&self, e: &Expr) -> bool {
        reads(e, &|name| self.held.contains_key(name))
    }

    fn type_of(&self, e: &Expr) -> Option<ScalarType> {
        let of =
            |name: &Name| self.symbols.get(name).map(|(ty, _)| ty).or_else(|| self.held.get(name)).copied();
        type_of(e, &of)
    }

    fn declare(&mut self, d: &Declare, out: &mut Block) {
        let same = d.constant && d.value.as_ref().is_some_and(|v| !self.differs(v));
        if same || (d.len.is_some() && !self.per_lane.contains(&d.name)) {
            return out.push(Stmt::Declare(d.clone()));
        }
        self.possible &= self.has_vectors_of(d.ty);
        let value = d.value.as_ref().map(|v| self.vector_value(v, d.ty, out));
        self.held.insert(d.name.clone(), d.ty);
        out.push(Stmt::Declare(Declare { lanes: self.width, value, ..d.clone() }));
    }

    fn assign(
        &mut self,
        place: &Place,
        op: Option<UpdateOp>,
        value: &Expr,
        origin: Option<InsnId>,
        out: &mut Block,
    ) {
        let stmt = |place, op, value| Stmt::Assign { place, op, value, origin };
        if let Some(ty) = self.held.get(&place.name).copied()
            && self.target == Vectors::Operators
        {
            let value = self.vector_value(value, ty, out);
            out.push(stmt(place.clone(), op, value));
        } else if let Some((vector, ty)) = self.vector_at(place) {
            let value = updated(place, op, value);
            let value = self.vector_value(&value, ty, out);
            self.use_vector(&vector);
            out.push(stmt(vector, None, value));
        } else {
            self.lane_by_lane(stmt(place.clone(), op, value.clone()), out);
        }
    }

    /// A statement for one lane after the other; what it surely loads next to each other is loaded
    /// before.
    fn lane_by_lane(&mut self, mut stmt: Stmt, out: &mut Block) {
        for e in stmt.expressions_mut() {
            self.load_vectors(e, out);
        }
        out.extend((0..self.width).map(|k| {
            let mut copy = stmt.clone();
            self.put_lane(&mut copy, k);
            copy
        }));
    }

    /// A value of all lanes as a vector with elements of type `ty`.
    fn vector_value(&mut self, value: &Expr, ty: ScalarType, out: &mut Block) -> Expr {
        if let Expr::Load(place) = value
            && let Some((vector, own)) = self.vector_at(place)
            && own == ty
        {
            self.use_vector(&vector);
            return Expr::Load(vector);
        }
        let mut value = value.clone();
        self.load_vectors(&mut value, out);
        self.vector(&value, ty)
    }

    /// Loads vectors into variables, which then stand in the expression; not what conditions may
    /// skip.
    fn load_vectors(&mut self, e: &mut Expr, out: &mut Block) {
        if let Expr::Load(place) = e
            && let Some((vector, ty)) = self.vector_at(place)
        {
            let known = self.loaded.iter().find(|(place, _)| *place == vector).map(|(_, name)| name.clone());
            let name = known.unwrap_or_else(|| self.load(vector, ty, out));
            *e = Expr::var(&name);
            return;
        }
        if let Expr::Select(first, ..) | Expr::Binary(Op::And | Op::Or, first, _) = e {
            return self.load_vectors(first, out);
        }
        for operand in e.operands_mut() {
            self.load_vectors(operand, out);
        }
    }

    fn load(&mut self, vector: Place, ty: ScalarType, out: &mut Block) -> Name {
        self.use_vector(&vector);
        let name = self.names.fresh(&format!("{}_{}", vector.name, self.head.name));
        self.new.push(name.clone());
        self.held.insert(name.clone(), ty);
        let declared = Declare::constant(name.clone(), ty, Expr::Load(vector.clone()));
        out.push(Stmt::Declare(Declare { lanes: self.width, ..declared }));
        self.loaded.push((vector, name.clone()));
        name
    }

    /// A vector of an expression whose loads are done: OpenCL's operators, or its lanes one by one.
    fn vector(&self, e: &Expr, ty: ScalarType) -> Expr {
        let whole = |e: &Expr| self.differs(e) && self.type_of(e) == Some(ty);
        let native = self.target == Vectors::Operators;
        match e {
            Expr::Load(place) if self.held.contains_key(&place.name) && whole(e) => e.clone(),
            Expr::Neg(a) if native && whole(e) => Expr::Neg(Box::new(self.vector(a, ty))),
            Expr::Binary(op @ (Op::Add | Op::Sub | Op::Mul | Op::Div), a, b) if native && whole(e) => {
                Expr::binary(*op, self.operand(a, ty), self.operand(b, ty))
            }
            Expr::Call(f, _, args) if native && whole(e) && !f.is_external() => {
                Expr::Call(*f, ty, args.iter().map(|a| self.vector(a, ty)).collect())
            }
            Expr::Int(..)
            | Expr::Real(..)
            | Expr::Bool(_)
            | Expr::Load(_)
            | Expr::Hardware { .. }
            | Expr::Neg(_)
            | Expr::Not(_)
            | Expr::Binary(..)
            | Expr::Call(..)
            | Expr::IntCall(..)
            | Expr::LanesCall(..)
            | Expr::Half(..)
            | Expr::Complex(..)
            | Expr::Pair(..)
            | Expr::Cast(..)
            | Expr::Select(..)
            | Expr::Vector { .. } => self.packed(e, ty),
        }
    }

    /// An operand of a vector's operator, which takes numbers of the same or a narrower type as
    /// they are.
    fn operand(&self, e: &Expr, ty: ScalarType) -> Expr {
        if self.differs(e) { self.vector(e, ty) } else { e.clone() }
    }

    /// A vector made of the values of its lanes.
    fn packed(&self, e: &Expr, ty: ScalarType) -> Expr {
        let one = self.target == Vectors::Operators && !self.differs(e);
        let lanes = (0..if one { 1 } else { self.width }).map(|k| {
            let mut lane = e.clone();
            self.put_lane_into(&mut lane, k);
            lane
        });
        Expr::Vector { ty, width: self.width, lanes: lanes.collect() }
    }

    /// The vector that starts where the first lane finds its element, and the type of its elements,
    /// if the lanes find theirs next to each other and the target loads and stores them at once.
    fn vector_at(&mut self, place: &Place) -> Option<(Place, ScalarType)> {
        let offset = place.offset.as_ref()?;
        let (ty, space) = *self.symbols.get(&place.name)?;
        let beside = slope(offset, &self.head.name, self.symbols) == Some(1);
        // values of 8 and 16 bits widen one by one, truth values are compared with 0, and functions take
        // complex numbers one by one
        let alone = ty.is_storage() || ty == ScalarType::Bool || ty.is_complex();
        if !beside || alone || self.held.contains_key(&place.name) || self.mentions_held(offset) {
            return None;
        }
        let fits = match self.target {
            Vectors::Operators => true,
            Vectors::Accesses { .. } => {
                matches!(space, Space::Global | Space::Input | Space::Local)
                    && self.has_vectors_of(ty)
                    && self.starts_at_multiples(&place.name, ty, offset)
            }
            Vectors::OfCompilers => false,
        };
        let mut vector = place.clone();
        self.put_lane_into_place(&mut vector, 0);
        vector.extent = Extent::Vector(ty, self.width);
        fits.then_some((vector, ty))
    }

    fn has_vectors_of(&self, ty: ScalarType) -> bool {
        match self.target {
            Vectors::Accesses { widest } => u64::from(self.width) * ty.bytes() <= widest && !ty.is_complex(),
            Vectors::Operators | Vectors::OfCompilers => !ty.is_complex(),
        }
    }

    /// Whether the first lanes of all vectors are at multiples of their number.
    fn starts_at_multiples(&mut self, array: &Name, ty: ScalarType, offset: &Expr) -> bool {
        let width = u64::from(self.width);
        let start = factor(&self.head.lower, &self.head.name, 1, self.known, self.symbols);
        let step = if self.single { start } else { of_sum(start, of_constant(width.cast_signed())) };
        let found = factor(offset, &self.head.name, step, self.known, self.symbols);
        if found < width && self.unaligned.is_none() {
            let (array, bytes) = (array.to_string(), ty.bytes());
            self.unaligned =
                Some(NoVectors::Unaligned { array, known: found * bytes, needed: width * bytes });
        }
        found >= width
    }

    fn use_vector(&mut self, vector: &Place) {
        self.vectors += 1;
        if let (Vectors::Accesses { .. }, Extent::Vector(ty, width)) = (self.target, vector.extent) {
            let bytes = self.aligned.entry(vector.name.clone()).or_default();
            *bytes = (*bytes).max(ty.bytes() * u64::from(width));
        }
    }

    fn put_lane(&self, stmt: &mut Stmt, k: u8) {
        let moves = |place: &Place| place.offset.as_ref().is_some_and(|e| mentions(e, &self.head.name));
        let moves = stmt.place().is_some_and(moves);
        for e in stmt.expressions_mut() {
            self.put_lane_into(e, k);
        }
        if let Some(place) = stmt.place_mut() {
            self.settle(place, moves, k);
        }
        for inner in stmt.body_mut().into_iter().flatten() {
            self.put_lane(inner, k);
        }
    }

    /// The expression for one lane.
    fn put_lane_into(&self, e: &mut Expr, k: u8) {
        if let Expr::Load(place) = e {
            if place.offset.is_none() && place.name == self.head.name {
                *e = self.index(k);
                return;
            }
            return self.put_lane_into_place(place, k);
        }
        for operand in e.operands_mut() {
            self.put_lane_into(operand, k);
        }
    }

    fn put_lane_into_place(&self, place: &mut Place, k: u8) {
        let Some(offset) = &mut place.offset else { return self.settle(place, false, k) };
        let moves = mentions(offset, &self.head.name);
        self.put_lane_into(offset, k);
        self.settle(place, moves, k);
    }

    /// A place whose offset is that of a lane.
    fn settle(&self, place: &mut Place, moves: bool, k: u8) {
        if self.held.contains_key(&place.name) {
            place.extent = Extent::Lane(k);
        }
        if let Some(offset) = place.offset.as_mut().filter(|_| moves) {
            **offset = joined((**offset).clone(), &self.head.name);
        }
    }

    /// The loop variable in a lane.
    fn index(&self, k: u8) -> Expr {
        let index = Expr::var(&self.head.name);
        match (self.single, k) {
            (true, _) => Expr::Int(k.into(), self.head.ty),
            (false, 0) => index,
            (false, _) => Expr::binary(Op::Add, index, Expr::int(k.into())),
        }
    }
}

/// What an update stores.
fn updated(place: &Place, op: Option<UpdateOp>, value: &Expr) -> Expr {
    let before = Expr::Load(place.clone());
    match (op, value) {
        (Some(UpdateOp::Add), Expr::Neg(v)) => Expr::binary(Op::Sub, before, (**v).clone()),
        (Some(UpdateOp::Add), v) => Expr::binary(Op::Add, before, v.clone()),
        (Some(UpdateOp::Mul), v) => Expr::binary(Op::Mul, before, v.clone()),
        // minimum and maximum are calls already
        (
            None | Some(UpdateOp::Min | UpdateOp::Max | UpdateOp::Or | UpdateOp::And | UpdateOp::Named(_)),
            v,
        ) => v.clone(),
    }
}
