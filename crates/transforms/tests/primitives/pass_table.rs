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

facts! {
    tables_of_both_kinds: TABLES, [PassTable::new("w"), PassTable::new("map")];
    there_and_back: TABLES, [PassTable::new("map"), FixArgument::int("map", [1, 0])];
    after_some_were_embedded: TABLES, [EmbedTable::new("w"), PassTable::new("w")];
    refuses_an_argument: TABLES, [PassTable::new("a")];
    refuses_unknown: TABLES, [PassTable::new("b")];
}
