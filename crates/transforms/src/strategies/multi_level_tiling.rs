//! Parametric multi-level tiling (Kulkarni & Klöckner 2025, §4.2, Algorithm 4).

use super::stages::{Field, Gathered, NotAnAction, Stages};
use super::staging::{
    STAGED, commit_flat, gather_flat, roll_gathers, stage_results, to_local, unrolled_rounds,
};
use crate::primitives::{
    AliasStorage, AssignToRule, ContractArray, DistributeLoop, ExpandArray, ExpandRule, FuseLoops,
    InterchangeInames, MakeAtomic, MoveInsns, NameKind, Place, PrefetchArray, Rename, SeparateArray,
    SetAddressSpace, SinkAccumulation, SplitArrayAxis, SplitIname, TagIname, TagInames,
};
use crate::recipe::{Recipe, RecipeError};
use purlin_ir::{AddressSpace, Kernel};

/// Arguments of [`multi_level_tiling`], with the symbols of the source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MultiLevelTiling {
    /// Cells of a work-group (*N*_c), on `l.0`.
    pub cells: i64,
    /// Work-items that share a cell (*N*_WI), on `l.1`.
    pub work_items_per_cell: i64,
    /// Quadrature points of a tile (*T*^Q).
    pub quad_tile: i64,
    /// Rows, which are quadrature points, of a tile of the evaluation stage (*T*_e^r).
    pub eval_rows: i64,
    /// Columns, which are degrees of freedom, of a tile of the evaluation stage (*T*_e^c), one for each function in
    /// textual order; if `staged`, one for all functions with the same matrices.
    pub eval_cols: Vec<i64>,
    /// Rows, which are test functions, of a tile of the quadrature stage (*T*_q^r).
    pub quad_rows: i64,
    /// Columns, which are quadrature points, of a tile of the quadrature stage (*T*_q^c).
    pub quad_cols: i64,
    /// Beyond the source: degrees of freedom of the cells of a group, and what is added to the result, go through
    /// local memory, read and updated by consecutive work-items; functions with the same matrices share their tiles
    /// (and one of `eval_cols`); rows of local arrays have an odd number of words.
    pub staged: bool,
}

/// A tiling that was not applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TilingError {
    /// The kernel is not made of the stages of Algorithm 2.
    #[error(transparent)]
    Stages(#[from] NotAnAction),
    /// A parameter that makes no sense.
    #[error("{symbol} is {found}, needed {needed}")]
    Parameter {
        /// What it is, and its symbol.
        symbol: String,
        /// Its value.
        found: i64,
        /// The bound it breaks.
        needed: String,
    },
    /// A step that was refused.
    #[error(transparent)]
    Step(#[from] RecipeError),
}

/// Most sums and degrees of freedom of a column tile that a work-item keeps in registers together; beyond, degrees of
/// freedom are read when their column's turn comes. A work-item has 127 registers for doubles. With 79 in registers
/// the 3-D P4 Helmholtz takes 3.48 ms, and 4.94 ms with the degrees of freedom read late; with 141 the 3-D P4
/// elasticity takes 4.20 ms, and 4.18 ms read late (H200, 2026-11-21).
pub const MAX_KEPT: i64 = 100;

/// Most multiplications of a column tile that are written out.
const MAX_UNROLLED: i64 = 2048;

/// Tiles the small matrix-vector products of an operator action and maps cells and rows onto a group of
/// `cells × work_items_per_cell` work-items.
///
/// Returns the kernel and the recipe that made it.
///
/// # Errors
/// A kernel without the stages, a parameter out of its bounds, or a step that was refused.
///
/// # Source
/// Kulkarni & Klöckner 2025, §4.2, equations (16) to (22), and Algorithm 4.
pub fn multi_level_tiling(kernel: &Kernel, args: &MultiLevelTiling) -> Result<(Kernel, Recipe), TilingError> {
    let stages = Stages::of(kernel)?;
    let (stages, recipe) =
        if args.staged { stages.with_shared_columns() } else { (stages, Recipe::default()) };
    args.check(&stages)?;
    let recipe = args.recipe(&stages, recipe);
    Ok((recipe.apply(kernel)?, recipe))
}

impl MultiLevelTiling {
    /// Whether the parameters suit the sizes.
    fn check(&self, stages: &Stages) -> Result<(), TilingError> {
        let within = |what: &str, found: i64, most: i64, of: &str| {
            if (1..=most).contains(&found) {
                return Ok(());
            }
            Err(TilingError::Parameter { symbol: what.into(), found, needed: format!("1 to {most}, {of}") })
        };
        let group = "the work-items of a group on any device";
        within("the number of cells of a group, N_c,", self.cells, 1024, group)?;
        within("the number of work-items of a cell, N_WI,", self.work_items_per_cell, 1024, group)?;
        within("the size of a group, N_c N_WI,", self.cells * self.work_items_per_cell, 1024, group)?;
        let points = "the number of quadrature points Q";
        within("the quadrature tile T^Q", self.quad_tile, stages.quad_count, points)?;
        let tile = "the quadrature tile T^Q";
        within("the row tile T_e^r of the evaluation", self.eval_rows, self.quad_tile, tile)?;
        within("the column tile T_q^c of the quadrature", self.quad_cols, self.quad_tile, tile)?;
        let rows = "the number of test functions n_W";
        within("the row tile T_q^r of the quadrature", self.quad_rows, stages.row_count, rows)?;
        if self.eval_cols.len() != stages.fields.len() {
            return Err(TilingError::Parameter {
                symbol: "the number of column tiles T_e^c".into(),
                found: self.eval_cols.len() as i64,
                needed: format!("{}, one for each function that is evaluated", stages.fields.len()),
            });
        }
        for (cols, field) in self.eval_cols.iter().zip(&stages.fields) {
            let what = format!("the column tile T_e^c of `{}`", field.name);
            within(&what, *cols, field.dof_count, "the number of its degrees of freedom in a cell")?;
        }
        Ok(())
    }

    /// Whether the degrees of freedom of a column tile are read before it is multiplied, into registers.
    fn keeps_columns(&self, s: &Stages, f: &Field, cols: i64) -> bool {
        let rounds = (self.eval_rows + self.work_items_per_cell - 1) / self.work_items_per_cell;
        let sums = rounds * s.fields.iter().map(|f| f.results.len() as i64).sum::<i64>();
        let values: i64 = f.gathered.iter().map(|g| g.components.unwrap_or(1)).sum();
        !self.staged
            && sums + cols * values <= MAX_KEPT
            && cols * rounds * f.results.len() as i64 <= MAX_UNROLLED
    }

    /// Gathered degrees of freedom as they are kept: one array a component in registers.
    fn gathered_parts(&self, f: &Field) -> Vec<String> {
        let parts = |g: &Gathered| match g.components {
            Some(n) if !self.staged => (0..n).map(|c| format!("{}_{c}", g.array)).collect(),
            Some(_) | None => vec![g.array.clone()],
        };
        f.gathered.iter().flat_map(parts).collect()
    }

    fn recipe(&self, s: &Stages, recipe: Recipe) -> Recipe {
        let recipe = if self.staged { roll_gathers(s, recipe) } else { recipe };
        let recipe = self.quadrature_tile(s, recipe);
        let recipe = self.matrix_tiles(s, recipe);
        let recipe = self.cells_of_a_group(s, recipe);
        let recipe = self.evaluation(s, recipe);
        let recipe = self.quadrature(s, recipe);
        let recipe = if self.staged { self.staged_gather(s, recipe) } else { self.gather(s, recipe) };
        let recipe = self.grid(s, recipe);
        self.prefetch(s, recipe)
    }

    /// §4.2.1: the quadrature loop is tiled, and each tile evaluates, then multiplies, then scatters.
    fn quadrature_tile(&self, s: &Stages, mut recipe: Recipe) -> Recipe {
        recipe = recipe
            .then(split(&s.quad, self.quad_tile, "quad_tile", "eval_point"))
            .then(SinkAccumulation::new(&s.element_vector, "quad_tile"));
        for e in &s.evaluated {
            recipe = recipe.then(ExpandArray::new(e, ["eval_point"]));
        }
        recipe
            .then(distribute("eval_point", std::slice::from_ref(&s.rows), &["quad_point".into()]))
            .then(MoveInsns { statements: vec![s.zero.clone()], to: Place::Before("quad_point".into()) })
    }

    /// §4.2.2, equations (16) to (20), and the rows of a tile by the work-items of a cell.
    fn matrix_tiles(&self, s: &Stages, mut recipe: Recipe) -> Recipe {
        let items = self.work_items_per_cell;
        recipe = recipe.then(split("eval_point", self.eval_rows, "eval_row_tile", "eval_row")).then(split(
            "eval_row",
            items,
            "eval_round",
            "eval_item",
        ));
        for (field, cols) in s.fields.iter().zip(&self.eval_cols) {
            recipe = recipe.then(split(&field.dofs, *cols, &field.col_tile(), &field.col()));
        }
        recipe = recipe.then(split("quad_point", self.quad_cols, "quad_col_tile", "quad_col"));
        let nests = [
            (&s.zero, "quad_row_tile", "zero"),
            (&s.rows, "sum_row_tile", "sum"),
            (&s.scatter, "scatter_row_tile", "scatter"),
        ];
        for (rows, tile, stage) in nests {
            let row = format!("{stage}_row");
            recipe = recipe.then(split(rows, self.quad_rows, tile, &row));
            if self.staged && rows == &s.scatter {
                recipe = stage_results(s, &row, "commit_row", recipe);
            }
            recipe = recipe.then(split(&row, items, &format!("{stage}_round"), &format!("{stage}_item")));
        }
        recipe
            .then(interchange("quad_col", "sum_row_tile"))
            .then(interchange("quad_col_tile", "sum_row_tile"))
            .then(FuseLoops { first: "quad_row_tile".into(), second: "sum_row_tile".into() })
            .then(FuseLoops { first: "quad_row_tile".into(), second: "scatter_row_tile".into() })
            .then(SplitArrayAxis { var: s.element_vector.clone(), axis: 0, factor: self.quad_rows })
            .then(ContractArray::new(&s.element_vector, 0))
            .then(SplitArrayAxis { var: s.element_vector.clone(), axis: 0, factor: items })
    }

    /// The cells of a group go inside the loops over tiles.
    fn cells_of_a_group(&self, s: &Stages, mut recipe: Recipe) -> Recipe {
        let vectors = s.fields.iter().flat_map(|f| &f.gathered).filter(|g| g.components.is_some());
        for vector in vectors.filter(|_| !self.staged) {
            recipe = recipe.then(SeparateArray::new(&vector.array, 1));
        }
        recipe = recipe.then(split(&s.cell, self.cells, "cell_group", "cell_item"));
        let gathered = s.fields.iter().flat_map(|f| self.gathered_parts(f));
        let staged = self.staged.then(|| STAGED.into());
        let of_cell = s.per_cell.iter().chain([&s.element_vector]).chain(&s.evaluated).cloned();
        let of_cell = of_cell.chain(gathered).chain(staged);
        for var in of_cell {
            recipe = recipe.then(ExpandArray::new(var, ["cell_item"]));
        }
        for result in s.fields.iter().flat_map(|f| &f.results) {
            recipe = recipe.then(ExpandArray::new(result, ["cell_item", "eval_round", "eval_item"]));
        }
        if self.staged {
            recipe = Self::gathers_by_themselves(s, recipe);
        }
        recipe
            .then(distribute(self.geometry_loop(), &["quad_tile".into()], &["cell_zero".into()]))
            .then(interchange("cell_zero", "quad_tile"))
            .then(distribute("cell_zero", &["quad_row_tile".into()], &["cell_start".into()]))
            .then(interchange("cell_zero", "eval_row_tile"))
            .then(interchange("cell_start", "quad_row_tile"))
    }

    /// The loop over the cells of a group around their geometry.
    fn geometry_loop(&self) -> &'static str {
        if self.staged { "cell_geometry" } else { "cell_item" }
    }

    /// The gather of each function in a loop over cells of its own, before the geometry.
    fn gathers_by_themselves(s: &Stages, mut recipe: Recipe) -> Recipe {
        if !s.late_gathers.is_empty() {
            let to = Place::Before(s.first.clone());
            recipe = recipe.then(MoveInsns { statements: s.late_gathers.clone(), to });
        }
        let gathers = &s.gathers;
        let mut parts = gathers[1..].to_vec();
        let mut names: Vec<String> = parts.iter().map(|g| cells_of(g)).collect();
        parts.push(s.first.clone());
        names.push("cell_geometry".into());
        recipe
            .then(Rename { kind: NameKind::Iname, from: "cell_item".into(), to: cells_of(&gathers[0]) })
            .then(distribute(&cells_of(&gathers[0]), &parts, &names))
    }

    /// The evaluation stage: one nest for each function, its column tiles outermost.
    fn evaluation(&self, s: &Stages, mut recipe: Recipe) -> Recipe {
        if let [first, others @ ..] = &s.fields[..]
            && !others.is_empty()
        {
            let statements = others.iter().flat_map(|f| f.inits.clone()).collect();
            recipe = recipe.then(MoveInsns { statements, to: Place::Before(first.col_tile()) });
        }
        let mut parts: Vec<String> = s.fields.iter().map(Field::col_tile).collect();
        parts.push(s.pointwise.clone());
        for (nest, stem) in [("eval_item", "item"), ("eval_round", "round"), ("cell_zero", "cell")] {
            let mut names: Vec<String> = s.fields.iter().map(|f| f.named(stem)).collect();
            names.push(format!("point_{stem}"));
            recipe = recipe.then(distribute(nest, &parts, &names));
        }
        for f in &s.fields {
            for outer in ["item", "round", "cell"] {
                recipe = recipe.then(interchange(&f.named(outer), &f.col_tile()));
            }
            // a column of all rounds after the other: what belongs to the column is read once
            for outer in ["item", "round"] {
                recipe = recipe.then(interchange(&f.named(outer), &f.col()));
            }
        }
        recipe
    }

    /// The quadrature stage: zero, accumulate over column tiles, scatter.
    fn quadrature(&self, _: &Stages, recipe: Recipe) -> Recipe {
        let parts = ["quad_col_tile", "scatter_round", "commit_row"].map(String::from);
        let names = ["cell_sum", "cell_scatter", "cell_commit"].map(String::from);
        let count = if self.staged { 3 } else { 2 };
        recipe
            .then(distribute("cell_start", &parts[..count], &names[..count]))
            .then(interchange("cell_sum", "quad_col_tile"))
    }

    /// Degrees of freedom of all cells of the group to local memory, and results from there.
    fn staged_gather(&self, s: &Stages, mut recipe: Recipe) -> Recipe {
        let group = [self.cells, self.work_items_per_cell];
        for f in &s.fields {
            recipe = gather_flat(f, |g| cells_of(&g.gather), group, recipe);
        }
        commit_flat(s, self.quad_rows, ["cell_commit", "commit_row"], group, recipe)
    }

    /// §4.2.2: degrees of freedom of a column tile to registers.
    fn gather(&self, s: &Stages, mut recipe: Recipe) -> Recipe {
        for (f, cols) in s.fields.iter().zip(&self.eval_cols) {
            for part in self.gathered_parts(f) {
                if self.keeps_columns(s, f, *cols) {
                    let fetch = PrefetchArray::new(&part, f.named("cell"), AddressSpace::Private);
                    recipe = recipe.then(fetch.into_temporary(format!("{part}_tile")));
                }
                recipe =
                    recipe.then(AssignToRule { var: part.clone() }).then(ExpandRule { rule: part.clone() });
                if self.keeps_columns(s, f, *cols) {
                    recipe = recipe.then(ExpandArray::new(format!("{part}_tile"), [f.named("cell")]));
                }
            }
            if self.keeps_columns(s, f, *cols) {
                // the gather comes before the barrier, so that both fetches are under way at a time
                recipe = recipe.then(distribute(&f.named("cell"), &[f.col()], &[f.named("eval_cell")]));
            }
        }
        recipe
    }

    /// §4.2.2: tiles of the matrices to local memory, all in the same memory (equation (22)). Behind the tags: the
    /// placement of every prefetch is that of the result, and no step of placing follows.
    fn prefetch(&self, s: &Stages, mut recipe: Recipe) -> Recipe {
        let eval = |(f, cols): (&'_ Field, &i64)| {
            (f.col_tile(), f.matrices.clone(), f.name.clone(), self.eval_rows, *cols)
        };
        let quad = (
            "quad_col_tile".to_owned(),
            s.matrices.clone(),
            "quad".to_owned(),
            self.quad_cols,
            self.quad_rows,
        );
        let nests = s.fields.iter().zip(&self.eval_cols).map(eval).chain([quad]);
        let mut buffers: Vec<Vec<String>> = Vec::new();
        for (at, matrices, name, points, others) in nests {
            for (k, matrix) in matrices.iter().enumerate() {
                let tile = format!("{matrix}_{name}");
                let mut fetch = PrefetchArray::new(matrix, &at, AddressSpace::Local).into_temporary(&tile);
                // the box of the last tile would reach into the next quadrature tile
                if self.quad_tile < s.quad_count && self.quad_tile % points != 0 {
                    fetch = fetch.exactly();
                }
                recipe = recipe.then(fetch.by_work_items([self.cells, self.work_items_per_cell]));
                if points * others == 1 {
                    continue; // a scalar shares no buffer
                }
                match buffers.get_mut(k) {
                    Some(sharers) => sharers.push(tile),
                    None => buffers.push(vec![tile]),
                }
            }
        }
        // with one quadrature tile the degrees of freedom are not needed any more when results are staged
        if self.staged && self.quad_tile == s.quad_count {
            let gathered = s.fields.iter().flat_map(|f| &f.gathered).map(|g| g.array.clone());
            buffers.push(gathered.take(1).chain([STAGED.into()]).collect());
        }
        for (k, vars) in buffers.into_iter().enumerate().filter(|(_, v)| v.len() > 1) {
            recipe = recipe.then(AliasStorage { vars, storage: format!("tile_{k}") });
        }
        recipe
    }

    /// §4.2.3: groups of cells, cells × work-items of a cell.
    fn grid(&self, s: &Stages, mut recipe: Recipe) -> Recipe {
        for e in &s.evaluated {
            recipe = match self.staged {
                true => to_local(e, self.quad_tile, 1, recipe),
                false => recipe.then(SetAddressSpace::new(e, AddressSpace::Local)),
            };
        }
        let of_stages = |stem: &str| -> Vec<String> {
            let fields = s.fields.iter().map(|f| f.named(stem));
            fields.chain(["point", "sum", "scatter", "zero"].map(|n| format!("{n}_{stem}"))).collect()
        };
        let columns = s.fields.iter().zip(&self.eval_cols);
        let kept: Vec<&Field> =
            columns.filter(|(f, cols)| self.keeps_columns(s, f, **cols)).map(|(f, _)| f).collect();
        let mut cells: Vec<String> = s.fields.iter().map(|f| f.named("cell")).collect();
        cells.extend(kept.iter().map(|f| f.named("eval_cell")));
        let of_group =
            [self.geometry_loop(), "cell_zero", "point_cell", "cell_start", "cell_sum", "cell_scatter"];
        cells.extend(of_group.map(String::from));
        let mut items = of_stages("item");
        items.push("eval_item".into());
        if self.staged {
            let flat = s.gathers.iter().cloned().chain(["commit".into()]);
            for name in flat {
                cells.push(format!("{name}_l0"));
                if self.work_items_per_cell > 1 {
                    items.push(format!("{name}_l1"));
                }
            }
        }
        let mut rounds = of_stages("round");
        rounds.push("eval_round".into());
        if self.staged {
            let items = self.cells * self.work_items_per_cell;
            rounds.extend(unrolled_rounds(s, self.quad_rows, self.cells, items));
        }
        // one column alone has no loop that reads it
        for f in
            s.fields.iter().zip(&self.eval_cols).filter(|(f, c)| **c > 1 && kept.contains(f)).map(|(f, _)| f)
        {
            // registers have no addresses: a column of a run-time number would send the tile to memory
            rounds.push(f.col());
            rounds.extend(self.gathered_parts(f).iter().map(|part| format!("{part}_tile_0")));
        }
        recipe
            .then(MakeAtomic::tag("scatter"))
            .then(TagInames::new(rounds, "unroll"))
            .then(TagIname::new("cell_group", "g.0"))
            .then(TagInames::new(cells, "l.0"))
            .then(TagInames::new(items, "l.1"))
    }
}

impl Field {
    fn named(&self, stem: &str) -> String {
        format!("{stem}_{}", self.name)
    }

    /// The loop over its column tiles.
    fn col_tile(&self) -> String {
        self.named("col_tile")
    }

    fn col(&self) -> String {
        self.named("col")
    }
}

/// The loop over the cells of a group around a gather.
fn cells_of(gather: &str) -> String {
    format!("cells_{gather}")
}

pub(super) fn split(iname: &str, factor: i64, outer: &str, inner: &str) -> SplitIname {
    SplitIname { outer: Some(outer.into()), inner: Some(inner.into()), ..SplitIname::new(iname, factor) }
}

fn interchange(outer: &str, inner: &str) -> InterchangeInames {
    InterchangeInames { outer: outer.into(), inner: inner.into() }
}

pub(super) fn distribute(iname: &str, before: &[String], names: &[String]) -> DistributeLoop {
    DistributeLoop { iname: iname.into(), before: before.to_vec(), names: names.to_vec() }
}
