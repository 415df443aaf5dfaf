//! Tables of squares and cubes as products of tables of one coordinate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Maximum number of entries of a table that is read from its factors, 1 GiB: a short file asks for
/// no more. Degree 15 with 18 points an axis has 24 million.
const MAX_ENTRIES: usize = 1 << 27;

/// A table by its factors, one an axis of the reference cell.
///
/// # Formula
/// With rows `q = (q_0, q_1, …)` and columns `i = (i_0, i_1, …)` of the product, the last digit
/// fastest, `table[q, d] = factors[0][q_0, i_0] * factors[1][q_1, i_1] * …` where `i = columns[d]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Product {
    /// Tables `[points, dofs]` of one coordinate each.
    factors: Vec<Vec<Vec<f64>>>,
    /// The column of the product that each column of the table is; its order if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    columns: Option<Vec<usize>>,
}

impl Product {
    /// Rows and columns of the table, and its entries, row-major.
    ///
    /// # Errors
    /// In words: no factors, rows of different lengths, columns that are not those of the product,
    /// each once, or more entries than a file may ask for.
    pub(super) fn table(&self) -> Result<([usize; 2], Vec<f64>), String> {
        let mut shape = [1_usize; 2];
        for (k, factor) in self.factors.iter().enumerate() {
            let columns = factor.first().map_or(0, Vec::len);
            if columns == 0 || factor.iter().any(|row| row.len() != columns) {
                return Err(format!("factor {k}: needed at least one row, all of one length above 0"));
            }
            let larger = |n: usize, by: usize| n.checked_mul(by).filter(|n| *n <= MAX_ENTRIES);
            let sizes = larger(shape[0], factor.len()).zip(larger(shape[1], columns));
            let within = sizes.filter(|(rows, columns)| larger(*rows, *columns).is_some());
            shape = within.map(<[usize; 2]>::from).ok_or_else(|| {
                format!("a product of factors with more than {MAX_ENTRIES} entries; write less of them")
            })?;
        }
        if self.factors.is_empty() {
            return Err("a product without factors: needed one for each axis".to_owned());
        }
        let [rows, n] = shape;
        let order = self.order(n)?;
        let mut entries = Vec::with_capacity(rows * n);
        for row in 0..rows {
            let whole = self.row(row);
            entries.extend(order.iter().map(|column| whole[*column]));
        }
        Ok((shape, entries))
    }

    /// The column of the product for each column of the table.
    fn order(&self, n: usize) -> Result<Vec<usize>, String> {
        let Some(columns) = &self.columns else { return Ok((0..n).collect()) };
        let distinct: BTreeSet<_> = columns.iter().filter(|column| **column < n).collect();
        if columns.len() != n || distinct.len() != n {
            return Err(format!("columns: needed each of the {n} columns of the product once"));
        }
        Ok(columns.clone())
    }

    /// A row of the product.
    fn row(&self, mut row: usize) -> Vec<f64> {
        let mut rows = Vec::with_capacity(self.factors.len());
        for factor in self.factors.iter().rev() {
            rows.push(&factor[row % factor.len()]);
            row /= factor.len();
        }
        rows.into_iter().rev().fold(vec![1.0], |whole, factor| {
            whole.iter().flat_map(|a| factor.iter().map(move |b| a * b)).collect()
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<([usize; 2], Vec<f64>), String> {
        let known = |e: serde_json::Error| e.to_string().split(" at line").next().unwrap().to_owned();
        serde_json::from_str::<Product>(text).map_err(known)?.table()
    }

    #[test]
    fn factors_are_multiplied() {
        let product = r#"{"factors": [[[1, 2]], [[3, 5], [7, 11]]]}"#;
        assert_eq!(read(product), Ok(([2, 4], vec![3.0, 5.0, 6.0, 10.0, 7.0, 11.0, 14.0, 22.0])));
        let moved = r#"{"factors": [[[1, 2]], [[3, 5], [7, 11]]], "columns": [3, 0, 2, 1]}"#;
        assert_eq!(read(moved), Ok(([2, 4], vec![10.0, 3.0, 6.0, 5.0, 22.0, 7.0, 14.0, 11.0])));
        let three = r#"{"factors": [[[2]], [[3]], [[5], [7]]]}"#;
        assert_eq!(read(three), Ok(([2, 1], vec![30.0, 42.0])));
    }

    #[test]
    fn factors_that_are_no_product_are_refused() {
        let refused = |text: &str, found: &str| assert_eq!(read(text), Err(found.to_owned()), "{text}");
        refused(r#"{"factors": []}"#, "a product without factors: needed one for each axis");
        let rows = "factor 1: needed at least one row, all of one length above 0";
        for second in ["[]", "[[]]", "[[1, 2], [3]]"] {
            refused(&format!(r#"{{"factors": [[[1]], {second}]}}"#), rows);
        }
        let columns = "columns: needed each of the 2 columns of the product once";
        for of in ["[0]", "[0, 0]", "[0, 2]", "[0, 1, 1]"] {
            refused(&format!(r#"{{"factors": [[[1]], [[1, 2]]], "columns": {of}}}"#), columns);
        }
        let large = vec![vec![0.0; 64]; 64];
        let large = Product { factors: vec![large; 3], columns: None };
        let found = "a product of factors with more than 134217728 entries; write less of them";
        refused(&serde_json::to_string(&large).unwrap(), found);
        refused(r#"{"factor": []}"#, "unknown field `factor`, expected `factors` or `columns`");
    }
}
