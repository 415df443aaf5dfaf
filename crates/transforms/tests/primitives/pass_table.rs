use crate::story::facts;
use purlin_transforms::primitives::{EmbedTable, FixArgument, PassTable};

const TABLES: &str = "kernel k
arg a: f64[4] inout
table w: f64[4] constant
table map: i32[2] global
for i in 0..4
  s: a[i] = w[i] - w[3 - 1]*f64(map[i mod 2])
table w = [0.1, 0.2, 3, 4]
table map = [1, 0]
";

const SCALAR: &str = "kernel k
param n: i32
arg y: f64[n] inout
table m: i32 global
for i in 0..n
  for j in 0..m
    s: y[i] += 1.0
table m = [3]
";

facts! {
    tables_of_both_kinds: TABLES, [PassTable::new("w"), PassTable::new("map")];
    there_and_back: TABLES, [PassTable::new("map"), FixArgument::int("map", [1, 0])];
    after_some_were_embedded: TABLES, [EmbedTable::new("w"), PassTable::new("w")];
    a_scalar_is_passed_by_value: SCALAR, [PassTable::new("m")];
    refuses_an_argument: TABLES, [PassTable::new("a")];
    refuses_unknown: TABLES, [PassTable::new("b")];
}
