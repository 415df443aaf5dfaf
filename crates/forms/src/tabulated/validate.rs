//! Checks that the parts of a tabulated form fit each other.

use super::{
    Integral, IntegralType, MathFunction, Node, Role, Side, Space, Table, TabulatedError, TabulatedForm,
    TermArgument, VERSION,
};
use kingpost_ir::verify::is_name;
use std::collections::BTreeSet;

/// Maximum number of columns, and of components: sizes of arrays stay far within 64 bits.
const MAX_EXTENT: usize = 1 << 16;

type Checked = Result<(), TabulatedError>;

fn invalid(place: impl Into<String>, found: impl ToString, needed: impl Into<String>) -> Checked {
    Err(TabulatedError::invalid(place, found, needed))
}

fn below(place: &str, found: usize, limit: usize, what: &str) -> Checked {
    match found < limit {
        true => Ok(()),
        false => invalid(place, found, format!("a place below {limit}, the number of {what}")),
    }
}

fn finite(place: &str, values: &[f64]) -> Checked {
    match values.iter().find(|v| !v.is_finite()) {
        Some(value) => invalid(place, value, "finite numbers"),
        None => Ok(()),
    }
}

impl TabulatedForm {
    /// Checks indices, shapes, numbers, names, ranks and the order of nodes.
    ///
    /// # Errors
    /// [`TabulatedError::Version`], or [`TabulatedError::Invalid`] with the path of the first part
    /// that does not fit.
    pub fn validate(&self) -> Result<(), TabulatedError> {
        if self.kingpost_form != VERSION {
            return Err(TabulatedError::Version { found: self.kingpost_form, needed: VERSION });
        }
        if !(self.cell.dim()..=3).contains(&self.gdim) {
            return invalid(
                "gdim",
                self.gdim,
                format!("{} to 3 for cells of a {}", self.cell.dim(), self.cell),
            );
        }
        if self.rank > 2 {
            return invalid("rank", self.rank, "0, 1 or 2");
        }
        self.check_names()?;
        for (k, space) in self.spaces.iter().enumerate() {
            self.check_space(&format!("spaces[{k}]"), space)?;
        }
        self.check_functions()?;
        for (k, constant) in self.constants.iter().enumerate() {
            if constant.shape.contains(&0) {
                return invalid(format!("constants[{k}].shape"), "an extent of 0", "positive extents");
            }
            let size = constant.shape.iter().fold(1_usize, |n, extent| n.saturating_mul(*extent));
            if size > MAX_EXTENT {
                let needed = format!("at most {MAX_EXTENT}");
                return invalid(format!("constants[{k}].shape"), format!("{size} components"), needed);
            }
        }
        self.check_outputs()?;
        for (k, integral) in self.integrals.iter().enumerate() {
            CheckIntegral { form: self, integral, place: format!("integrals[{k}]") }.check()?;
        }
        Ok(())
    }

    fn check_names(&self) -> Checked {
        let mut seen = BTreeSet::new();
        let functions = self.functions.iter().enumerate();
        let functions =
            functions.map(|(k, f)| (format!("functions[{k}].name"), f.argument_name().to_owned()));
        let constants = self.constants.iter().enumerate();
        let constants = constants.map(|(k, c)| (format!("constants[{k}].name"), c.name.clone()));
        let outputs = self.outputs.iter().enumerate();
        let outputs = outputs.map(|(k, o)| (format!("outputs[{k}].name"), o.name.clone()));
        let kernel = std::iter::once(("name".to_owned(), self.name.clone()));
        for (place, name) in kernel.chain(functions).chain(constants).chain(outputs) {
            if !is_name(&name) {
                let needed = "a letter or `_`, then letters, digits and `_`, and no keyword or function";
                return invalid(place, format!("`{name}`"), needed);
            }
            if !seen.insert(name.clone()) {
                return invalid(place, format!("`{name}` a second time"), "different names");
            }
        }
        let mut spaces = BTreeSet::new();
        for (k, space) in self.spaces.iter().enumerate() {
            if !is_name(&space.name) || !spaces.insert(&space.name) {
                let found = format!("`{}`", space.name);
                return invalid(format!("spaces[{k}].name"), found, "a name that no other space has");
            }
        }
        Ok(())
    }

    fn check_space(&self, place: &str, space: &Space) -> Checked {
        if space.columns == 0 || space.block == 0 {
            return invalid(
                place,
                format!("{} columns of {} components", space.columns, space.block),
                "at least one of each",
            );
        }
        if space.columns > MAX_EXTENT || space.block > MAX_EXTENT {
            return invalid(
                place,
                format!("{} columns of {} components", space.columns, space.block),
                format!("at most {MAX_EXTENT} of each"),
            );
        }
        if let Some(nodes) = &space.nodes {
            if nodes.len() != space.columns {
                let found = format!("{} points", nodes.len());
                return invalid(format!("{place}.nodes"), found, format!("{}, one a column", space.columns));
            }
            check_points(&format!("{place}.nodes"), nodes, self.cell.dim())?;
        }
        for (k, t) in space.transforms.iter().enumerate() {
            let place = format!("{place}.transforms[{k}]");
            for dof in &t.dofs {
                below(&format!("{place}.dofs"), *dof, space.columns, "columns")?;
            }
            let distinct: BTreeSet<_> = t.dofs.iter().collect();
            if distinct.len() != t.dofs.len() || t.dofs.is_empty() {
                return invalid(format!("{place}.dofs"), format!("{:?}", t.dofs), "different columns");
            }
            let n = t.dofs.len();
            match t.matrices.shape() {
                [states, rows, columns] if *states > 0 && *rows == n && *columns == n => {}
                shape => {
                    let needed = format!("matrices of {n} rows and columns, one a state");
                    return invalid(format!("{place}.matrices"), format!("the shape {shape:?}"), needed);
                }
            }
            finite(&format!("{place}.matrices"), t.matrices.entries())?;
        }
        Ok(())
    }

    fn check_functions(&self) -> Checked {
        let mut coordinates = 0;
        for (k, function) in self.functions.iter().enumerate() {
            below(&format!("functions[{k}].space"), function.space, self.spaces.len(), "spaces")?;
            if function.role == Role::Coordinates {
                coordinates += 1;
                let block = self.spaces[function.space].block;
                if block != self.gdim {
                    return invalid(
                        format!("functions[{k}].space"),
                        format!("a space of {block} components"),
                        format!("{} components, those of a position", self.gdim),
                    );
                }
            }
        }
        match coordinates {
            0 | 1 => Ok(()),
            n => invalid("functions", format!("{n} functions of role `coordinates`"), "at most one"),
        }
    }

    fn check_outputs(&self) -> Checked {
        if self.outputs.is_empty() {
            return invalid("outputs", "none", "at least one");
        }
        for (k, output) in self.outputs.iter().enumerate() {
            let place = format!("outputs[{k}].spaces");
            if output.spaces.len() != self.rank {
                let needed = format!("{}, the rank of the form", self.rank);
                return invalid(place, format!("{} spaces", output.spaces.len()), needed);
            }
            for space in &output.spaces {
                below(&place, *space, self.spaces.len(), "spaces")?;
            }
        }
        Ok(())
    }
}

fn check_points(place: &str, points: &[Vec<f64>], dim: usize) -> Checked {
    for (k, point) in points.iter().enumerate() {
        if point.len() != dim {
            let found = format!("a point with {} coordinates", point.len());
            return invalid(format!("{place}[{k}]"), found, format!("{dim}"));
        }
        finite(&format!("{place}[{k}]"), point)?;
    }
    Ok(())
}

struct CheckIntegral<'f> {
    form: &'f TabulatedForm,
    integral: &'f Integral,
    place: String,
}

impl CheckIntegral<'_> {
    fn at(&self, part: &str) -> String {
        format!("{}.{part}", self.place)
    }

    fn check(&self) -> Checked {
        let integral = self.integral;
        if integral.weights.is_empty() {
            return invalid(self.at("weights"), "none", "at least one");
        }
        finite(&self.at("weights"), &integral.weights)?;
        if !integral.points.is_empty() {
            if integral.points.len() != integral.weights.len() {
                let found = format!("{} points", integral.points.len());
                let needed = format!("{}, one a weight", integral.weights.len());
                return invalid(self.at("points"), found, needed);
            }
            check_points(&self.at("points"), &integral.points, integral.over.point_dim(self.form.cell))?;
        }
        for (k, table) in integral.tables.iter().enumerate() {
            self.check_table(&self.at(&format!("tables[{k}]")), table)?;
        }
        for (k, e) in integral.evaluations.iter().enumerate() {
            let place = self.at(&format!("evaluations[{k}]"));
            below(&format!("{place}.function"), e.function, self.form.functions.len(), "functions")?;
            let space = self.form.functions[e.function].space;
            let columns = TermArgument {
                table: e.table,
                offset: e.offset,
                stride: e.stride,
                component: e.component,
                side: e.side,
            };
            self.check_columns(&place, &columns, &self.form.spaces[space])?;
        }
        for (k, node) in integral.nodes.iter().enumerate() {
            self.check_node(&self.at(&format!("nodes[{k}]")), k, node)?;
        }
        for (k, name) in &integral.names {
            below(&self.at("names"), *k, integral.nodes.len(), "nodes")?;
            if !is_name(name) {
                return invalid(self.at(&format!("names[{k}]")), format!("`{name}`"), "a name of a kernel");
            }
        }
        for k in 0..integral.terms.len() {
            self.check_term(&self.at(&format!("terms[{k}]")), k)?;
        }
        Ok(())
    }

    fn check_table(&self, place: &str, table: &Table) -> Checked {
        let (cell, points) = (self.form.cell, self.integral.weights.len());
        let place = &format!("{place}.values");
        let leading = match (self.integral.over, table.permutations) {
            (IntegralType::Cell, None) => vec![],
            (IntegralType::ExteriorFacet | IntegralType::InteriorFacet, None) => vec![cell.facets().len()],
            (IntegralType::InteriorFacet, Some(n)) => vec![n, cell.facets().len()],
            (IntegralType::Cell | IntegralType::ExteriorFacet, Some(n)) => {
                return invalid(
                    place,
                    format!("{n} permutations"),
                    "none: only interior facets have orientations",
                );
            }
        };
        let shape = table.values.shape();
        let fits = shape.len() == leading.len() + 2
            && shape[..leading.len()] == leading[..]
            && (shape[leading.len()] == points || shape[leading.len()] == 1)
            && shape[leading.len() + 1] > 0;
        if !fits {
            let list: Vec<String> = leading.iter().chain([&points]).map(usize::to_string).collect();
            return invalid(place, format!("the shape {shape:?}"), format!("[{}, dofs]", list.join(", ")));
        }
        finite(place, table.values.entries())
    }

    fn check_side(&self, place: &str, side: Option<Side>) -> Checked {
        match (self.integral.over, side) {
            (IntegralType::InteriorFacet, Some(_))
            | (IntegralType::Cell | IntegralType::ExteriorFacet, None) => Ok(()),
            (IntegralType::InteriorFacet, None) => invalid(place, "no side", "the side `+` or `-`"),
            (IntegralType::Cell | IntegralType::ExteriorFacet, Some(_)) => {
                invalid(place, "a side", "none: only interior facets have sides")
            }
        }
    }

    fn check_columns(&self, place: &str, a: &TermArgument, space: &Space) -> Checked {
        below(&format!("{place}.table"), a.table, self.integral.tables.len(), "tables")?;
        self.check_side(place, a.side)?;
        below(&format!("{place}.component"), a.component, space.block, "components of its space")?;
        let dofs = self.integral.tables[a.table].dofs();
        let last = a.offset.saturating_add(a.stride.saturating_mul(dofs.saturating_sub(1)));
        if a.stride == 0 || last >= space.columns {
            let found = format!("columns {} to {last} with stride {}", a.offset, a.stride);
            return invalid(place, found, format!("columns below {} of `{}`", space.columns, space.name));
        }
        Ok(())
    }

    fn check_node(&self, place: &str, k: usize, node: &Node) -> Checked {
        let (form, integral) = (self.form, self.integral);
        for operand in node.operands() {
            if operand >= k {
                return invalid(place, format!("the operand {operand}"), format!("operands below {k}"));
            }
        }
        match node {
            Node::Literal(value) => finite(place, &[*value])?,
            Node::Constant(c, component) => {
                below(place, *c, form.constants.len(), "constants")?;
                below(place, *component, form.constants[*c].size(), "components of the constant")?;
            }
            Node::Evaluation(e) => below(place, *e, integral.evaluations.len(), "evaluations")?,
            Node::Table(t, side) => {
                below(place, *t, integral.tables.len(), "tables")?;
                let dofs = integral.tables[*t].dofs();
                if dofs != 1 {
                    return invalid(place, format!("a table of {dofs} columns"), "one column");
                }
                if side.is_some() && integral.over != IntegralType::InteriorFacet {
                    self.check_side(place, *side)?;
                }
            }
            Node::Math(MathFunction::Complex, _) if !form.scalar.ty().is_complex() => {
                let found = format!("a complex number in a form of `{}`", form.scalar.ty());
                return invalid(place, found, "real operations, or `c64` or `c128` as `scalar`");
            }
            Node::Weight
            | Node::Negate(_)
            | Node::Arithmetic(..)
            | Node::Math(..)
            | Node::Compare(..)
            | Node::And(..)
            | Node::Or(..)
            | Node::Not(_)
            | Node::Select(..) => {}
            Node::Bessel(_, order, _) => {
                if !(0..=64).contains(order) {
                    return invalid(place, format!("order {order}"), "an order of 0 to 64");
                }
            }
        }
        self.check_kinds(place, node)
    }

    /// Conditions stand where conditions are needed, and nowhere else.
    fn check_kinds(&self, place: &str, node: &Node) -> Checked {
        for (i, operand) in node.operands().into_iter().enumerate() {
            let needs_condition = matches!(node, Node::And(..) | Node::Or(..) | Node::Not(_))
                || matches!(node, Node::Select(..)) && i == 0;
            let word = |condition| if condition { "a condition" } else { "a number" };
            let is_condition = self.integral.nodes[operand].is_condition();
            if is_condition != needs_condition {
                let found = format!("{} as operand {i}", word(is_condition));
                return invalid(place, found, word(needs_condition));
            }
        }
        Ok(())
    }

    fn check_term(&self, place: &str, k: usize) -> Checked {
        let (form, integral, term) = (self.form, self.integral, &self.integral.terms[k]);
        below(&format!("{place}.output"), term.output, form.outputs.len(), "outputs")?;
        below(&format!("{place}.factor"), term.factor, integral.nodes.len(), "nodes")?;
        if integral.nodes[term.factor].is_condition() {
            return invalid(format!("{place}.factor"), "a condition", "a number");
        }
        if term.arguments.len() != form.rank {
            let found = format!("{} arguments", term.arguments.len());
            return invalid(
                format!("{place}.arguments"),
                found,
                format!("{}, the rank of the form", form.rank),
            );
        }
        let spaces = &form.outputs[term.output].spaces;
        for (j, (argument, space)) in term.arguments.iter().zip(spaces).enumerate() {
            self.check_columns(&format!("{place}.arguments[{j}]"), argument, &form.spaces[*space])?;
        }
        Ok(())
    }
}
