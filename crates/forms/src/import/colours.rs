//! Entities whose results share no entry, and kernels on some of their entities.

use super::CsrPattern;
use crate::lowering::{LoweredKernel, LoweredRole};
use crate::tabulated::TabulatedError;
use purlin_interp::{Memory, Value};
use purlin_ir::{Affine, Atom, VarId};

/// Most colours: bits of a word.
const MOST: usize = u128::BITS as usize;

impl CsrPattern {
    /// Entities by colour, each in ascending order: the matrices of those of a colour have no entry of
    /// the sparse matrix in common. Each entity gets the first colour that is free.
    ///
    /// ```
    /// use purlin_forms::import::CsrPattern;
    ///
    /// // three intervals in a row: the first and the last share no node
    /// let map = [0, 1, 1, 2, 2, 3];
    /// let pattern = CsrPattern::of_rows(4, 4, 2, 2, &map, &map)?;
    /// assert_eq!(pattern.colours()?, [vec![0, 2], vec![1]]);
    /// # Ok::<(), purlin_forms::tabulated::TabulatedError>(())
    /// ```
    ///
    /// # Errors
    /// [`TabulatedError::Invalid`]: an entity two of whose entries are one of the sparse matrix, or that
    /// needs more than 128 colours.
    ///
    /// # Source
    /// Cecka et al. 2011: assembly by colours.
    pub fn colours(&self) -> Result<Vec<Vec<u32>>, TabulatedError> {
        let size: usize = self.extents.iter().product();
        coloured(&self.positions(), size, self.columns.len(), ["entries", "entry"])
    }
}

/// Entities by colour, each in ascending order, of a map `[entities, columns]` to `n` degrees of
/// freedom: those of a colour share none. Each entity gets the first colour that is free.
///
/// ```
/// use purlin_forms::import::map_colours;
///
/// // three intervals in a row: the first and the last share no node
/// assert_eq!(map_colours(&[0, 1, 1, 2, 2, 3], 2, 4)?, [vec![0, 2], vec![1]]);
/// # Ok::<(), purlin_forms::tabulated::TabulatedError>(())
/// ```
///
/// # Errors
/// [`TabulatedError::Invalid`]: an entity with one degree of freedom twice, or that needs more than
/// 128 colours.
///
/// # Source
/// Cecka et al. 2011: assembly by colours.
pub fn map_colours(map: &[i32], columns: usize, n: usize) -> Result<Vec<Vec<u32>>, TabulatedError> {
    coloured(map, columns, n, ["degrees of freedom", "degree of freedom"])
}

/// Entities by colour, where each has that number of the `n` places.
fn coloured(
    places: &[i32],
    size: usize,
    n: usize,
    names: [&str; 2],
) -> Result<Vec<Vec<u32>>, TabulatedError> {
    let mut taken = vec![0_u128; n];
    let mut colours: Vec<Vec<u32>> = Vec::new();
    for (entity, places) in places.chunks(size.max(1)).enumerate() {
        let used = places.iter().fold(0, |used, place| used | taken[*place as usize]);
        let colour = used.trailing_ones() as usize;
        let refused =
            |found: String, needed: String| TabulatedError::Invalid { place: "map".into(), found, needed };
        let [several, one] = names;
        if colour == MOST {
            return Err(refused(
                format!("entity {entity}, which shares {several} with entities of {MOST} colours"),
                "fewer of them; update atomically".into(),
            ));
        }
        for place in places {
            let own = &mut taken[*place as usize];
            if *own >> colour & 1 == 1 {
                return Err(refused(
                    format!("entity {entity}, which adds to {one} {place} twice"),
                    "different degrees of freedom; update atomically".into(),
                ));
            }
            *own |= 1 << colour;
        }
        if colour == colours.len() {
            colours.push(Vec::new());
        }
        colours[colour].push(entity as u32);
    }
    Ok(colours)
}

impl LoweredKernel {
    /// The arguments of this kernel on some of its entities: of arrays with a row for each entity, the
    /// rows of these. Everything else is the same.
    #[must_use]
    pub fn on_entities(&self, memory: &Memory, entities: &[u32]) -> Memory {
        let Some(count) = self.entity_count() else { return memory.clone() };
        let mut some = memory.clone();
        let data = &self.kernel.vars[count];
        let all = usize::try_from(memory.get_param(&data.name).unwrap_or(0)).unwrap_or(0);
        some.set_param(&data.name, entities.len() as i64);
        let is_by_entity = |first: Option<&Affine>| {
            first.is_some_and(|e| e.constant_term() == 0 && e.terms() == [(Atom::Var(count), 1)])
        };
        for var in self.kernel.vars.values().filter(|v| is_by_entity(v.shape.first())) {
            let Some(value) = memory.get(&var.name) else { continue };
            let width = value.len().checked_div(all).unwrap_or(0);
            some.set(&var.name, rows_of(value, width, entities));
        }
        some
    }

    /// The parameter that counts entities: the first extent of what says where their entries stand, which
    /// cells they are of, or which degrees of freedom they have.
    fn entity_count(&self) -> Option<VarId> {
        let of_matrix = |role: LoweredRole| matches!(role, LoweredRole::Positions { .. });
        let listed = |role: LoweredRole| role == LoweredRole::EntityCells;
        let of_cells = |role: LoweredRole| matches!(role, LoweredRole::Map { .. });
        let find = |is: &dyn Fn(LoweredRole) -> bool| self.arguments.iter().find(|a| is(a.role));
        let places = find(&of_matrix).or_else(|| find(&listed)).or_else(|| find(&of_cells))?;
        let places = &self.kernel.vars[self.kernel.var(&places.name)?];
        match places.shape.first()?.terms() {
            [(Atom::Var(count), 1)] => Some(*count),
            _ => None,
        }
    }
}

/// Some rows of an array.
fn rows_of(value: &Value, width: usize, rows: &[u32]) -> Value {
    fn taken<T: Copy>(values: &[T], width: usize, rows: &[u32]) -> Vec<T> {
        let row = |row: &u32| values.get(*row as usize * width..(*row as usize + 1) * width);
        rows.iter().filter_map(row).flatten().copied().collect()
    }
    match value {
        Value::F64(v) => Value::F64(taken(v, width, rows)),
        Value::F32(v) => Value::F32(taken(v, width, rows)),
        Value::I32(v) => Value::I32(taken(v, width, rows)),
        Value::I64(v) => Value::I64(taken(v, width, rows)),
        Value::I16(v) => Value::I16(taken(v, width, rows)),
    }
}
