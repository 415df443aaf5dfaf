//! The sharing graph, and the integer program that says which symbols are factorised.

use crate::StrategyError;
use good_lp::{Expression, ProblemVariables, Solution, SolverModel, Variable, constraint, microlp, variable};
use std::collections::BTreeSet;

/// Symbols of a bilinear expression, and the products of two of them that are its terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharingGraph {
    /// The symbols, as the kernel's text has them.
    pub symbols: Vec<String>,
    /// Pairs of symbols that are multiplied, each once.
    pub products: BTreeSet<(usize, usize)>,
}

impl SharingGraph {
    /// Number of products that a symbol is part of.
    #[must_use]
    pub fn degree(&self, symbol: usize) -> usize {
        self.products.iter().filter(|(a, b)| *a == symbol || *b == symbol).count()
    }

    /// The fewest symbols such that each product has one of them; each is one multiplication in the
    /// innermost loop.
    ///
    /// `min sum_i x_i` where `sum_j y_ij <= n_i x_i` for each symbol `i`, and `y_ij + y_ji = 1` for each
    /// product; `x_i` says whether `i` is factorised, `y_ij` whether it is in the product with `j`, `n_i`
    /// is the number of its products.
    ///
    /// # Errors
    /// [`StrategyError::IntegerProgram`] with what the solver says.
    ///
    /// # Source
    /// Luporini et al. 2017, §3.2.2, step 5 of Algorithm 1.
    pub fn factorised(&self) -> Result<BTreeSet<usize>, StrategyError> {
        let mut unknowns = ProblemVariables::new();
        let symbols: Vec<Variable> = self.symbols.iter().map(|_| unknowns.add(variable().binary())).collect();
        let mut sides = Vec::new();
        for (a, b) in &self.products {
            sides.push([(*a, unknowns.add(variable().binary())), (*b, unknowns.add(variable().binary()))]);
        }
        let all: Expression = symbols.iter().sum();
        let mut model = unknowns.minimise(all).using(microlp);
        for (i, x) in symbols.iter().enumerate() {
            let of_symbol = sides.iter().flatten().filter(|(symbol, _)| *symbol == i);
            let used: Expression = of_symbol.map(|(_, y)| *y).sum();
            model = model.with(constraint!(used <= self.degree(i) as f64 * *x));
        }
        for [(_, first), (_, second)] in &sides {
            model = model.with(constraint!(*first + *second == 1.0));
        }
        let solution = model.solve().map_err(|e| StrategyError::IntegerProgram(e.to_string()))?;
        // binary, up to the tolerance of the solver
        Ok((0..symbols.len()).filter(|i| solution.value(symbols[*i]) > 0.5).collect())
    }
}
