use crate::story::facts;
use purlin_ir::AddressSpace::{Constant, Global, Local, Private};
use purlin_transforms::primitives::{MakeAtomic, SetAddressSpace, TagIname};

fn set(var: &str, space: purlin_ir::AddressSpace) -> SetAddressSpace {
    SetAddressSpace::new(var, space)
}

const STAGED: &str = "kernel staged
param n: i32
arg a: f64[n] in
arg b: f64[n] inout
temp t: f64[n] global
table w: f64[2] global
for i in 0..n
  load: t[i] = a[i]*w[i mod 2]
for j in 0..n
  store: b[j] = t[n - 1 - j]

table w = [1.0, 2.0]
";

facts! {
    each_memory: STAGED, [set("t", Local), set("t", Private), set("t", Global)];
    table_in_constant_memory: STAGED, [set("w", Constant), set("w", Global)];
    local_with_a_barrier: STAGED, [set("t", Local), TagIname::new("i", "l.0"), TagIname::new("j", "l.0")];
    refuses_private_for_another_work_item: STAGED,
        [set("t", Local), TagIname::new("i", "l.0"), TagIname::new("j", "l.0"), set("t", Private)];
    refuses_local_for_another_group: "kernel staged
param n: i32
arg a: f64[n] in
arg b: f64[n] inout
temp t: f64[n] private
for i in 0..n {g.0}
  load: t[i] = a[i]
for j in 0..n {g.0}
  store: b[j] = t[n - 1 - j]
", [set("t", Local)];
    refuses_an_argument: STAGED, [set("a", Local)];
    refuses_a_parameter: STAGED, [set("n", Local)];
    refuses_unknown_variable: STAGED, [set("c", Local)];
    refuses_unknown_space: STAGED, [SetAddressSpace { var: "t".into(), space: "shared".into() }];
    refuses_a_temporary_in_constant_memory: STAGED, [set("t", Constant)];
    refuses_a_local_table: STAGED, [set("w", Local)];
    refuses_private_for_an_atomic_update: "kernel k
param n: i32
arg y: f64 inout
temp t: f64 local
z: t = 0.0
for i in 0..n
  s: t += 1.0
e: y = t
", [MakeAtomic::insn("s"), set("t", Private)];
}
