//! Calls: text, what is and what is no call, and that a call means what stands in it.

use crate::kernel::Kernel;
use crate::text::{parse, parse_callees, print};
use insta::assert_snapshot;

const AXPY4: &str = "callee axpy4
  arg a: f64 in
  arg x: f64[4] in
  arg y: f64[4] inout

  for l in 0..4
    s: y[l] += a*x[l]
";

#[track_caller]
fn kernel(text: &str) -> Kernel {
    parse(text).unwrap_or_else(|e| panic!("{}", e.render(text)))
}

/// A kernel with `AXPY4` and this body.
fn calling(body: &str) -> String {
    format!(
        "kernel k\nparam n: i32\narg alpha: f64 in\narg u: f64[n, 16] in\narg v: f64[n, 16] inout\n\
         arg w: f64[n, 16] inout\narg dof: i32[n] in\n{AXPY4}{body}"
    )
}

/// The text of a kernel that parses back, or the errors.
fn result(text: &str) -> String {
    match parse(text) {
        Err(errors) => errors.render(text),
        Ok(kernel) => {
            assert_eq!(parse(&print(&kernel)).as_ref(), Ok(&kernel));
            let text = print(&kernel);
            text.split_once("\nfor ").map_or(text.clone(), |(_, body)| format!("for {body}"))
        }
    }
}

#[track_caller]
fn call(body: &str) -> String {
    result(&calling(body))
}

#[test]
fn arguments_are_solved_for() {
    assert_snapshot!(call("for i in 0..n
  call axpy4
    for j in 0..4
      t: v[i, 4 + j] += alpha*u[i, 3*j]
  for b in 0..4
    call axpy4
      for k in 4*b..4*b + 4
        p: w[i, k] += u[i, k]*2.0
"), @r#"
for i in 0..n
  call axpy4  # a = alpha, x = u[i, 0.. by 3], y = v[i, 4..]
    for j in 0..4
      t: v[i, 4 + j] += alpha*u[i, 3*j]
  for b in 0..4
    call axpy4  # a = 2.0, x = u[i, 4*b..], y = w[i, 4*b..]
      for k in 4*b..4*b + 4
        p: w[i, k] += u[i, k]*2.0
"#);
}

#[test]
fn windows_through_maps_and_backward() {
    assert_snapshot!(call("for i in 0..n
  call axpy4
    for j in 0..4
      t: v[dof[i], 7 - j] += u[dof[i] + 1, 0]*u[i, j]
"), @r#"
for i in 0..n
  call axpy4  # a = u[dof[i] + 1, 0], x = u[i, 0..], y = v[dof[i], 7.. by -1]
    for j in 0..4
      t: v[dof[i], 7 - j] += u[dof[i] + 1, 0]*u[i, j]
"#);
}

#[test]
fn two_calls_of_one_statement_each_stay_two() {
    assert_snapshot!(result("kernel k
param n: i32
arg x: f64[n] in
arg y: f64[n] inout
callee fused
  arg a: f64 in
  arg c: f64 inout

  s: c = fma(a, 2.0, c)
for i in 0..n
  call fused
    s_0: y[i] = fma(2.0, x[i], y[i])
    s_1: y[i] = fma(x[i], 2.0, y[i])
"), @r#"
for i in 0..n
  call fused  # a = x[i], c = y[i]
    s_0: y[i] = fma(2.0, x[i], y[i])
  call fused  # a = x[i], c = y[i]
    s_1: y[i] = fma(x[i], 2.0, y[i])
"#);
}

#[test]
fn what_is_no_call() {
    let body = |inside: &str| format!("for i in 0..n\n  call axpy4\n    for j in {inside}");
    let cases = [
        "0..4\n      t: v[i, j] = alpha*u[i, j]\n",
        "0..5\n      t: v[i, j] += alpha*u[i, j]\n",
        "0..4\n      t: v[i, j] += alpha + u[i, j]\n",
        "0..4\n      t: v[i, j] += u[i, j + 1]*u[i, j]\n",
        "0..4\n      t: v[i, j] += alpha*v[i, j + 1]*1.0\n",
        "0..4\n      t: v[i, j] += v[i, 0]*u[i, j]\n",
        "0..4\n      t: v[i, j] += alpha*u[dof[j], j]\n",
        "0..4\n      t: v[i, j] += alpha*u[i, j] if i < 3\n",
        "0..4 {l.0}\n      t: v[i, j] += alpha*u[i, j]\n",
        "0..4\n      t: v[i, j] += alpha*u[i, j]\n      r: w[i, j] = 0.0\n",
        "0..4\n      for m in 0..1\n        t: v[i, j] += alpha*u[i, j]\n",
    ];
    let errors = cases.map(|inside| {
        let text = calling(&body(inside));
        let errors = parse(&text).expect_err("no call");
        errors.to_string()
    });
    assert_snapshot!(errors.join("\n"), @r#"
18:7: what stands in the call of `axpy4` is not `axpy4`: `t` as `s`: found `=`, needed `+=`; inline the call first
17:5: what stands in the call of `axpy4` is not `axpy4`: `j` as `l`: found `j in 0..5`, needed `l in 0..4`; inline the call first
18:7: what stands in the call of `axpy4` is not `axpy4`: `t` as `s`: found `alpha + u[i, j]`, needed `a*x[l]`; inline the call first
18:7: what stands in the call of `axpy4` is not `axpy4`: `t` as `s`: found `u[i, j + 1]`, needed one value of `a`; inline the call first
18:7: what stands in the call of `axpy4` is not `axpy4`: `t` as `s`: found `alpha*v[i, j + 1]`, needed one value of `a`; inline the call first
5:1: what stands in the call of `axpy4` is not `axpy4`: the argument `a`: found `v`, which the statements write, needed what they do not write; inline the call first
18:7: what stands in the call of `axpy4` is not `axpy4`: `t` as `s`: found `u[dof[j], j]`, needed a window `x[l]`; inline the call first
18:7: what stands in the call of `axpy4` is not `axpy4`: `t` as `s`: found the condition `i < 3`, needed none; inline the call first
17:5: what stands in the call of `axpy4` is not `axpy4`: `j` as `l`: found tag l.0, needed sequential; inline the call first
1:1: what stands in the call of `axpy4` is not `axpy4`: the statements: found 2 statements, needed 1 statement; inline the call first
18:7: what stands in the call of `axpy4` is not `axpy4`: `m` as `l`: found `m in 0..1`, needed `l in 0..4`; inline the call first
"#);
}

#[test]
fn what_is_no_call_of_a_callee_with_more_arguments() {
    let case = |callee: &str, body: &str| {
        let text = calling(&format!("callee c\n{callee}\nfor i in 0..n\n  call c\n{body}"));
        parse(&text).expect_err("no call").to_string()
    };
    let swept = |statements: &str| format!("    for j in 0..4\n{statements}");
    let errors = [
        // one value, one type, one array
        case(
            "  arg a: f64 in\n  arg y: f64 inout\n  s: y += a*exp(a)\n",
            "    t: v[i, 0] += alpha*exp(u[i, 0])\n",
        ),
        case("  arg a: f32 in\n  arg y: f64 inout\n  s: y += a\n", "    t: v[i, 0] += alpha\n"),
        case(
            "  arg x: f64[4] in\n  arg y: f64[4] inout\n  for l in 0..4\n    s: y[l] += x[l]\n    r: y[l] *= x[l]\n",
            &swept("      t: v[i, j] += u[i, j]\n      p: v[i, j] *= w[i, j]\n"),
        ),
        // a parameter that is none
        case(
            "  param m: i64\n  arg y: f64[4] inout\n  for l in 0..4\n    s: y[l] += f64(m)\n",
            &swept("      t: v[i, j] += f64(j)\n"),
        ),
        // the second element lies `n` after the first
        case(
            "  arg x: f64[5] in\n  arg y: f64[4] inout\n  for l in 0..4\n    s: y[l] += x[l]\n    r: y[l] *= x[l + 1]\n",
            &swept("      t: v[i, j] += u[i, j]\n      p: v[i, j] *= u[i, j + n]\n"),
        ),
        // the element `2*i` of what begins at `2*i` is another one
        case(
            "  arg m: i64 in\n  arg k: i64 in\n  arg x: f64[64, 64] in\n  arg y: f64[4] inout\n  for l in 0..4\n    \
             s: y[l] += x[m*k, 0]\n    r: y[l] *= x[l, 0]\n",
            &swept("      t: v[i, j] += u[2*i, 0]\n      p: v[i, j] *= u[2*i + j, 0]\n"),
        ),
    ];
    assert_snapshot!(errors.join("\n"), @r#"
22:5: what stands in the call of `c` is not `c`: `t` as `s`: found `u[i, 0]`, needed `alpha` for `a`; inline the call first
22:5: what stands in the call of `c` is not `c`: `t` as `s`: found `alpha`, needed f32 for `a`; inline the call first
26:7: what stands in the call of `c` is not `c`: `p` as `r`: found `w[i, j]`, needed an element of `u` for `x`; inline the call first
24:7: what stands in the call of `c` is not `c`: `t` as `s`: found `j`, needed `m`; inline the call first
26:7: what stands in the call of `c` is not `c`: `p` as `r`: found `u[i, j + n]`, needed a window `x[l + 1]`; inline the call first
28:7: what stands in the call of `c` is not `c`: `p` as `r`: found `u[2*i + j, 0]`, needed a window `x[l, 0]`; inline the call first
"#);
}

#[test]
fn every_instruction_of_a_call_names_the_callee() {
    let mut half = kernel(
        "kernel k\narg v: f64[4] inout\ncallee c\n  arg y: f64[4] inout\n  for l in 0..4\n    s: y[l] = 1.0\n    \
         r: y[l] *= 2.0\ncall c\n  for j in 0..4\n    t: v[j] = 1.0\n    p: v[j] *= 2.0\n",
    );
    let last = half.insn("p").expect("there");
    half.insns[last].callee = None;
    let error = half.verify().expect_err("half a call").to_string();
    assert_snapshot!(error, @"what stands in the call of `c` is not `c`: the callee of `p`: found no callee, needed `c`; inline the call first");
}

#[test]
fn text_that_is_wrong() {
    let cases = [
        calling("for i in 0..n\n  call axpy\n    s: v[i, 0] = 1.0\n"),
        calling("call n\n  s: v[0, 0] = 1.0\n"),
        calling("for i in 0..n\n  call axpy4\n    call axpy4\n      for j in 0..4\n        t: v[i, j] += alpha*u[i, j]\n"),
        "kernel k\ncallee c\n  temp t: f64\n  s: t = 1.0\n".to_owned(),
        "kernel k\ncallee c\n  arg y: f64 inout\n  s: z = 1.0\n".to_owned(),
        "kernel k\ncallee c\n  arg y: f64 inout\n  s: y = 1.0\n  callee d\n    s: y = 1.0\n".to_owned(),
        "kernel k\ncallee c\n  arg y: f64 inout\n  s: y = 1.0\n  code c (\"{y = 1;\")\n".to_owned(),
        "kernel k\ncallee c\n  arg y: f64[4] inout\n  for i in 0..4\n    s: y[i] = 1.0\n  code c (\"{y[i]} = 1;\")\n"
            .to_owned(),
        "kernel k\ncallee c\n  arg y: f64 inout\n  s: y = 1.0\n  code c (\"{x} = 1;\")\n".to_owned(),
        "kernel k\ncallee k\n  arg y: f64 inout\n  s: y = 1.0\ncallee c\n  arg y: f64 inout\n".to_owned(),
        "kernel k\ncallee c\n  arg y: f64 inout\n  s: y += 1.0 {atomic}\n  code c (\"{y} += 1;\")\n".to_owned(),
        "kernel k\ncallee c\n  arg y: f64[4] inout\n  for i in 0..4 {g.0}\n    s: y[i] = 1.0\n  code c (\"f({&y[0]});\")\n"
            .to_owned(),
        "kernel k\ncallee c\n  arg a: f64 in\n  arg y: f64[4] inout\n  for i in 0..4 {l.0}\n    s: y[i] = a\n  \
         code c (\"f({a});\")\n"
            .to_owned(),
        "kernel k\ncallee c\n  arg m: i64 in\n  arg y: f64[4] inout\n  s: y[m] = 1.0\n  code c (\"{y[m]} = 1;\")\n"
            .to_owned(),
    ];
    let errors = cases.map(|text| match parse(&text) {
        Ok(kernel) => panic!("parsed:\n{kernel}"),
        Err(errors) => errors.to_string(),
    });
    assert_snapshot!(errors.join("\n"), @r#"
16:8: the callee `axpy` is not known; declare it with `callee axpy` above the body
15:6: `n` is not a callee
17:5: a call in a call; write what the inner one does
2:1: callee `c`: `t` is no argument; pass it as one
4:6: the variable `z` is not known; a new value is `let z = ...`; arrays are declared: `temp z: f64[n]`
5:3: a callee in a callee; declare each at the left margin
5:11: a brace without a partner in the code; write `{{` and `}}` for braces, `{x[0]}` for an argument
6:11: `{y[i]}` in the code: the name `i` is not known
5:11: `{x}` in the code: the variable `x` is not known
5:1: callee `c`: it has a loop without instructions; remove that
2:1: callee `c`: the code for c: the meaning has an atomic update, which no code can stand for
2:1: callee `c`: the code for c: `i` runs on work-groups, which no code can stand for
2:1: callee `c`: the code for c: `a` may differ among the work-items; make it an array
2:1: callee `c`: the code for c: the index of `y` mentions `m`, needed parameters and loops over work-items
"#);
}

#[test]
fn code_prints_and_parses_back() {
    let text = "callee put
  arg a: f64 in
  arg y: f64[2] inout

  for l in 0..2
    s: y[l] = a
  code \"c 99\" needs(\"v-2\", wide) (
    \"{{ double *p = {&y[0]}; p[0] = {a};\"
    \"\"
    \"  p[1] = {a}; }} // \\\"both\\\"\"
  )
";
    let callees = parse_callees(text).unwrap_or_else(|e| panic!("{}", e.render(text)));
    let kernel = Kernel { name: "k".into(), callees: callees.into_iter().collect(), ..Kernel::default() };
    assert_snapshot!(print(&kernel), @r#"
kernel k

callee put
  arg a: f64 in
  arg y: f64[2] inout

  for l in 0..2
    s: y[l] = a
  code "c 99" needs("v-2", wide) (
    "{{ double *p = {&y[0]}; p[0] = {a};"
    ""
    "  p[1] = {a}; }} // \"both\""
  )
"#);
    assert_eq!(parse(&print(&kernel)), Ok(kernel));
}

#[test]
fn code_needs_windows_that_lie_as_declared_and_different_arrays() {
    let put = AXPY4.to_owned() + "  code c (\"f({&x[0]}, {&y[0]}, {a});\")\n";
    let of = |declared: &str, statement: &str| {
        let text = format!(
            "kernel k\nparam n: i32\n{declared}arg v: f64[n] inout\n{put}for i in 0..n\n  call axpy4\n    \
             for j in 0..4\n      t: {statement}\n"
        );
        parse(&text).map_or_else(|e| e.to_string(), |_| "a call".into())
    };
    let results = [
        of("arg u: f64[n, 4] in\n", "v[4*i + j] += 2.0*u[i, j]"),
        of("arg u: f64[n, 4] in\n", "v[4*i + 2*j] += 2.0*u[i, j]"),
        of("arg u: f64[4, n] in\n", "v[4*i + j] += 2.0*u[j, i]"),
        of("arg u: f64[4, 8] in strides(1, 4)\n", "v[4*i + j] += 2.0*u[j, i]"),
        of("arg u: f64[4, 8] in\n", "v[4*i + j] += 2.0*v[j]"),
        of(
            "temp w: f64[32] private storage(s)\ntemp z: f64[32] private storage(s)\n",
            "w[4*i + j] += 2.0*z[j]",
        ),
    ];
    assert_snapshot!(results.join("\n"), @r#"
a call
4:1: what stands in the call of `axpy4` is not `axpy4`: the stride of axis 0 of `y`: found 2 in `v`, needed 1; inline the call first
3:1: what stands in the call of `axpy4` is not `axpy4`: the stride of axis 0 of `x`: found n in `u`, needed 1; inline the call first
a call
4:1: what stands in the call of `axpy4` is not `axpy4`: the arguments `y` and `x`: found both in `v`, needed different arrays; inline the call first
1:1: what stands in the call of `axpy4` is not `axpy4`: the arguments `y` and `x`: found both in `s`, needed different arrays; inline the call first
"#);
}

const COPY: &str = "callee copy
  arg from: f64[2] in
  arg to: f64[2] out

  for l in 0..2
    s: to[l] = from[l]
  code cuda needs(sm_80) memory(from: global, to: local) aligned(16) completes(\"wait;\") (
    \"copy({&to[0]}, {&from[0]});\"
  )
";

#[test]
fn code_that_completes_later_prints_as_it_was_read() {
    let in_groups = COPY.replace("completes(\"wait;\")", "completes(commit \"end;\", wait \"wait {n};\")");
    let begun = in_groups.replace("(commit", "(begin(128) (\"ring r;\" \"if (first) {\" \"}\"), commit");
    let boxed = begun.replace("{&from[0]}", "{map from}, {begin from, 0}");
    let by_proxy = begun.replace("aligned(16)", "aligned(16) proxy(\"fence;\")");
    for text in [COPY, &in_groups, &begun, &boxed, &by_proxy] {
        let callees = parse_callees(text).unwrap_or_else(|e| panic!("{}", e.render(text)));
        let kernel = Kernel { name: "k".into(), callees: callees.into_iter().collect(), ..Kernel::default() };
        assert!(print(&kernel).ends_with(text), "{kernel}");
        let json = serde_json::to_string(&kernel).unwrap_or_default();
        assert_eq!(serde_json::from_str::<Kernel>(&json).ok(), Some(kernel));
    }
}

#[test]
fn code_that_completes_later_only_stores() {
    let of = |statement: &str, code: &str| {
        let text = format!(
            "kernel k\ncallee copy\n  arg a: f64[1] in\n  arg b: f64[1] inout\n\n  {statement}\n  code cuda {code}\n"
        );
        parse(&text).map_or_else(|e| e.to_string(), |_| "a callee".into())
    };
    let later = "completes(\"wait;\")";
    let results = [
        of("s: b[0] = a[0]", &format!("{later} (\"copy({{&b[0]}}, {{a[0]}});\")")),
        of("s: b[0] += a[0]", &format!("{later} (\"copy({{&b[0]}});\")")),
        of("s: b[0] = a[0] + b[0]", &format!("{later} (\"copy({{&b[0]}});\")")),
        of("s: b[0] = a[0]", &format!("{later} (\"{{b[0]}} = {{a[0]}};\")")),
        of("for l in 0..32 {l.0}\n    s: b[0] = a[0]", &format!("{later} (\"copy({{&b[0]}});\")")),
        of("s: b[0] = a[0]", "completes(\"\") (\"copy({&b[0]});\")"),
        of("s: b[0] = a[0]", "completes(wait) (\"copy({&b[0]});\")"),
        of("s: b[0] = a[0]", "completes(commit \"c;\", wait \"w {n};\") (\"copy({&b[0]});\")"),
        of("s: b[0] = a[0]", "completes(commit \"\", wait \"w {n};\") (\"copy({&b[0]});\")"),
        of("s: b[0] = a[0]", "completes(commit \"c;\", wait \"w;\") (\"copy({&b[0]});\")"),
        of("s: b[0] = a[0]", "completes(\"w {n};\") (\"copy({&b[0]});\")"),
        of("s: b[0] = a[0]", "completes(commit \"c;\") (\"copy({&b[0]});\")"),
        of("s: b[0] = a[0]", "proxy(\" \") (\"copy({&b[0]});\")"),
        of("s: b[0] = a[0]", "aligned(12) (\"copy({&b[0]});\")"),
        of("s: b[0] = a[0]", "aligned(many) (\"copy({&b[0]});\")"),
        of("s: b[0] = a[0]", "memory(c: local) (\"copy({&b[0]});\")"),
        of("s: b[0] = a[0]", "memory(b: here) (\"copy({&b[0]});\")"),
        of("s: b[0] = a[0]", "memory(b: local, b: local) (\"copy({&b[0]});\")"),
    ];
    assert_snapshot!(results.join("\n"), @r#"
a callee
2:1: callee `copy`: the code for cuda: it completes later, and `s` updates, which reads; let it store
2:1: callee `copy`: the code for cuda: it completes later, and `s` reads `b`, which it writes
2:1: callee `copy`: the code for cuda: it completes later, and the value of `b` is not there yet; take its address
2:1: callee `copy`: the code for cuda: it completes later, several work-items make a call, and `s` stores; let it update accumulators, or let one work-item make it
2:1: callee `copy`: the code for cuda: it completes by nothing; say by which statement
7:23: expected the statement after which the call is done, in quotes, found `wait`
a callee
2:1: callee `copy`: the code for cuda: it completes by nothing; say by which statement
2:1: callee `copy`: the code for cuda: it commits groups and waits for no number of them; say `{n}` where the wait has it
2:1: callee `copy`: the code for cuda: it waits for all groups but `{n}`, and nothing commits one; say `commit "..."`
7:34: expected `,` and `wait "..."`, found `)`
2:1: callee `copy`: the code for cuda: it accesses memory by a proxy; say by which statement ordinary accesses are done
2:1: callee `copy`: the code for cuda: it takes addresses at multiples of 12 bytes, needed a power of two up to 1024
7:21: expected a number of bytes, found `many`
7:20: `c` is no argument of the callee
7:23: `here` is no address space; there are `global`, `constant`, `literal`, `local`, `subgroup`, `private`
7:30: the memory of `b` stands there twice
"#);
}

#[test]
fn code_says_where_its_arguments_are() {
    let of = |declared: &str, statement: &str| {
        let text = format!(
            "kernel k\narg u: f64[64] inout\narg map: i32[8] in\n{declared}{COPY}for i in 0..8\n  call copy\n    \
             for j in 0..2\n      put: {statement}\n"
        );
        parse(&text).map_or_else(|e| e.to_string(), |_| "a call".into())
    };
    let results = [
        of("temp t: f64[16] local\n", "t[2*i + j] = u[2*i + j]"),
        of("temp t: f64[16] local\n", "t[2*i + j] = u[2*i + j + 1]"),
        of("temp t: f64[17] local\n", "t[i + j] = u[2*i + j]"),
        of("temp t: f64[8, 3] local\n", "t[i, j] = u[2*i + j]"),
        of("temp t: f64[8, 4] local\n", "t[i, j] = u[2*i + j]"),
        of("temp t: f64[16] local\n", "t[2*i + j] = u[2*map[i] + j]"),
        of("temp t: f64[16] private\n", "t[2*i + j] = u[2*i + j]"),
        of("temp t: f64[16] global\n", "t[2*i + j] = u[2*i + j]"),
        of("temp t: f64[16] local\n", "u[2*i + j] = t[2*i + j]"),
    ];
    assert_snapshot!(results.join("\n"), @r#"
a call
2:1: what stands in the call of `copy` is not `copy`: the address of `from[0]`: found element 2*i + 1 of `u`, known to lie at a multiple of 8 bytes, needed a multiple of 16 bytes; inline the call first
4:1: what stands in the call of `copy` is not `copy`: the address of `to[0]`: found element i of `t`, known to lie at a multiple of 8 bytes, needed a multiple of 16 bytes; inline the call first
4:1: what stands in the call of `copy` is not `copy`: the address of `to[0]`: found element 3*i of `t`, known to lie at a multiple of 8 bytes, needed a multiple of 16 bytes; inline the call first
a call
17:7: what stands in the call of `copy` is not `copy`: `put` as `s`: found `u[2*map[i] + j]`, needed a window `from[l]`; inline the call first
4:1: what stands in the call of `copy` is not `copy`: the memory of `to`: found private, where `t` is, needed local; inline the call first
4:1: what stands in the call of `copy` is not `copy`: the memory of `to`: found global, where `t` is, needed local; inline the call first
4:1: what stands in the call of `copy` is not `copy`: the memory of `from`: found local, where `t` is, needed global; inline the call first
"#);
}

/// A product of a team of sub-groups, which reads its factors by descriptors, with the layouts of these.
#[test]
fn tiles_lie_as_a_team_reads_them() {
    let call = |a: &str, b: &str, row: &str| {
        let text = format!(
            "kernel k\nparam n: i32\narg z: f32[4, 32, 32, 2, 2] out\ntemp a: bf16[128, 8, 8] local{a}\n\
             temp b: bf16[4, 64, 8, 8] local{b}\ntemp c: f32[4, 32, 32, 2, 2] private\n\n{}\n\
             for g in 0..n {{g.0}}\n  call wgmma_m64n256k64_bf16\n    for w in 0..4 {{l.1}}\n      \
             for lane in 0..32 {{l.0}}\n        for j in 0..32\n          for i in 0..2\n            \
             for x in 0..2\n              for u in 0..8\n                for e in 0..8\n                  \
             s: c[w, lane, j, i, x] += b[floor_div(j, 8), 8*u + e, j mod 8, 2*(lane mod 4) + x]\
             *a[{row} + 16*w + 8*i + floor_div(lane, 4), u, e]\n",
            crate::intrinsics::wgmma(256, "bf16")
        );
        parse(&text).map_or_else(|e| e.errors()[0].message.clone(), |_| "a call".into())
    };
    let (a, b) = (" swizzle(1 ^= 0)", " swizzle(2 ^= 1)");
    let results = [
        call(a, b, "64"),
        call(a, b, "8"),
        call(a, b, "4"),
        call("", b, "64"),
        call(a, " swizzle(2 ^= 0)", "64"),
        call(" swizzle(2 ^= 0)", b, "64"),
        call(" strides(72, 8, 1) swizzle(1 ^= 0)", b, "64"),
    ];
    assert_snapshot!(results.join("\n"), @r#"
a call
what stands in the call of `wgmma_m64n256k64_bf16` is not `wgmma_m64n256k64_bf16`: the address of `a[0, 0, 0]`: found that of `a[8, 0, 0]`, known to lie at a multiple of 128 bytes, needed a multiple of 1024 bytes
what stands in the call of `wgmma_m64n256k64_bf16` is not `wgmma_m64n256k64_bf16`: the swizzle of `a`: found swizzle(1 ^= 0) of `a`, needed swizzle(1 ^= 0), of the whole axis and from a multiple of its extent on
what stands in the call of `wgmma_m64n256k64_bf16` is not `wgmma_m64n256k64_bf16`: the swizzle of `a`: found none of `a`, needed swizzle(1 ^= 0), of the whole axis and from a multiple of its extent on
what stands in the call of `wgmma_m64n256k64_bf16` is not `wgmma_m64n256k64_bf16`: the swizzle of `b`: found swizzle(2 ^= 0) of `b`, needed swizzle(2 ^= 1), of the whole axis and from a multiple of its extent on
what stands in the call of `wgmma_m64n256k64_bf16` is not `wgmma_m64n256k64_bf16`: the swizzle of `a`: found swizzle(2 ^= 0) of `a`, needed swizzle(1 ^= 0), of the whole axis and from a multiple of its extent on
what stands in the call of `wgmma_m64n256k64_bf16` is not `wgmma_m64n256k64_bf16`: the stride of axis 0 of `a`: found 72 in `a`, needed 64
"#);
}

/// What several work-items call together and completes later updates registers, and reads no others.
#[test]
fn code_of_a_team_that_completes_later_updates_registers() {
    let of = |statement: &str, begin: &str, code: &str| {
        let text = format!(
            "kernel k\ncallee add\n  arg a: f64[4] in\n  arg c: f64[32] inout\n\n  for l in 0..32 {{l.0}}\n    \
             {statement}\n  code cuda completes({begin}commit \"end;\", wait \"wait {{n}};\") (\"{code}\")\n"
        );
        parse(&text).map_or_else(|e| e.to_string(), |_| "a callee".into())
    };
    let results = [
        of("s: c[l] += a[0]", "", "add({c[l]}, {&a[0]});"),
        of("s: c[l] = a[0]", "", "add({c[l]}, {&a[0]});"),
        of("s: c[l] += a[0]", "", "add({&c[l]}, {&a[0]});"),
        of("s: c[l] += a[0]*c[31 - l]", "", "add({c[l]}, {&a[0]});"),
        of("s: c[l] += a[0]", "begin(8) (\"ring r;\"), ", "add({c[l]}, {&a[0]});"),
        of("s: c[l] += a[0]", "begin(8) (\" \"), ", "add({c[l]}, {&a[0]});"),
    ];
    assert_snapshot!(results.join("\n"), @r#"
a callee
2:1: callee `add`: the code for cuda: it completes later, several work-items make a call, and `s` stores; let it update accumulators, or let one work-item make it
2:1: callee `add`: the code for cuda: several work-items hold `c` in registers, which have no address; name its elements
2:1: callee `add`: the code for cuda: it completes later, and `s` reads `c[31 - l]`, which others update
2:1: callee `add`: the code for cuda: several work-items make a call, and what it begins with is for the first one alone
2:1: callee `add`: the code for cuda: it completes by nothing; say by which statement
"#);
}

/// Accumulators are in registers, where no address is taken.
#[test]
fn accumulators_are_in_registers() {
    let of = |space: &str, spelled: &str| {
        let text = format!(
            "kernel k\narg x: f64[4] in\ntemp a: f64[4] local\ntemp c: f64[32] {space}\n\
             callee add\n  arg a: f64[4] in\n  arg c: f64[32] inout\n\n  for l in 0..32 {{l.0}}\n    s: c[l] += a[0]\n  \
             code cuda completes(commit \"end;\", wait \"wait {{n}};\") (\"add({{c[l]}}, {{&a[0]}});\")\n\n\
             call add\n  for i in 0..32 {{l.0}}\n    t: c[i] += {spelled}\n"
        );
        parse(&text).map_or_else(|e| e.to_string(), |_| "a call".into())
    };
    let results = [of("private", "a[0]"), of("local", "a[0]"), of("private", "x[0]")];
    assert_snapshot!(results.join("\n"), @r#"
a call
4:1: what stands in the call of `add` is not `add`: the memory of `c`, which the call touches after its code: found local, needed private; inline the call first
a call
"#);
}

/// A box goes one step along each axis of an array whose rows begin at multiples of 16 bytes.
#[test]
fn boxes_are_found_by_the_copy_engine() {
    let of = |array: &str, to: &str, element: &str| {
        let text = format!(
            "kernel k\nparam n: i32\narg a: bf16{array}\ntemp t: bf16[64, 8, 8] local{to}\n\n{}\n\
             for i in 0..2\n  call copy_box_bf16_64x64\n    for r in 0..64\n      for u in 0..8\n        \
             for e in 0..8\n          s: t[r, u, e] = a[{element}]\n",
            crate::intrinsics::copy_box("bf16")
        );
        parse(&text).map_or_else(|e| e.errors()[0].message.clone(), |_| "a call".into())
    };
    let to = " swizzle(1 ^= 0)";
    let results = [
        of("[128, 8*n] in", to, "64*i + r, 8*u + e"),
        of("[128, 4*n] in", to, "64*i + r, 8*u + e"),
        of("[128, 8*n] in", to, "i + 2*r, 8*u + e"),
        of("[8*n, 128] in", to, "8*u + e, 64*i + r"),
        of("[2, 64, 64] in", to, "i, r, 8*u + e"),
        of("[128, 8*n] in", "", "64*i + r, 8*u + e"),
        of("[128, 8*n] inout", to, "64*i + r, 8*u + e"),
        of("[128, 64] in strides(1, 128)", to, "64*i + r, 8*u + e"),
    ];
    assert_snapshot!(results.join("\n"), @r#"
a call
what stands in the call of `copy_box_bf16_64x64` is not `copy_box_bf16_64x64`: the stride of axis 0 of `a`: found known to be a multiple of 8 bytes, needed a multiple of 16 bytes
what stands in the call of `copy_box_bf16_64x64` is not `copy_box_bf16_64x64`: the box `from`: found a window of `a` with other axes or steps, needed one step along each axis of the array
what stands in the call of `copy_box_bf16_64x64` is not `copy_box_bf16_64x64`: the box `from`: found a window of `a` with other axes or steps, needed one step along each axis of the array
what stands in the call of `copy_box_bf16_64x64` is not `copy_box_bf16_64x64`: the box `from`: found a window of `a` with other axes or steps, needed one step along each axis of the array
what stands in the call of `copy_box_bf16_64x64` is not `copy_box_bf16_64x64`: the swizzle of `to`: found none of `t`, needed swizzle(1 ^= 0), of the whole axis and from a multiple of its extent on
what stands in the call of `copy_box_bf16_64x64` is not `copy_box_bf16_64x64`: the array of the box `from`: found `a`, which is not, needed an argument that is only read, in global memory, with rows whose elements are neighbours
what stands in the call of `copy_box_bf16_64x64` is not `copy_box_bf16_64x64`: the array of the box `from`: found `a`, which is not, needed an argument that is only read, in global memory, with rows whose elements are neighbours
"#);
}

/// Boxes have sides of at most 256 elements, rows of units, and the swizzle of the engine.
#[test]
fn boxes_have_shapes_that_the_copy_engine_has() {
    let of = |from: &str, to: &str, element: &str| {
        let text = format!(
            "kernel k\ncallee copy\n  arg from: {from}\n  arg to: f32[64, 8, 4] out{to}\n\n  for r in 0..64\n    \
             for u in 0..8\n      for e in 0..4\n        s: to[r, u, e] = from[{element}]\n  code cuda \
             completes(commit \"end;\", wait \"wait {{n}};\") (\"copy({{&to[0, 0, 0]}}, {{map from}}, {{begin from, 1}});\")\n"
        );
        parse(&text).map_or_else(|e| e.to_string(), |_| "a callee".into())
    };
    let results = [
        of("f32[64, 32] in", " swizzle(1 ^= 0)", "r, 4*u + e"),
        of("f32[64, 32] in", "", "r, 4*u + e"),
        of("f32[64, 32] in", " swizzle(0 ^= 1)", "r, 4*u + e"),
        of("f32[64, 64] in", " swizzle(1 ^= 0)", "r, 4*u + e"),
        of("f32[300, 32] in", "", "r, 4*u + e"),
        of("f32[64, 33] in", "", "r, 4*u + e"),
        of("f32[2048] in", "", "32*r + 4*u + e"),
    ];
    assert_snapshot!(results.join("\n"), @r#"
a callee
a callee
2:1: callee `copy`: the code for cuda: boxes are swizzled in rows of 128 bytes, in units of 16 by the row, and `to` in another way
2:1: callee `copy`: the code for cuda: boxes are swizzled in rows of 128 bytes, in units of 16 by the row, and `to` in another way
2:1: callee `copy`: the code for cuda: boxes have 1 to 5 axes and sides of 1 to 256 elements, which `from` has not
2:1: callee `copy`: the code for cuda: rows of `from` have 132 bytes, needed a multiple of 16
2:1: callee `copy`: the code for cuda: boxes have 1 to 5 axes and sides of 1 to 256 elements, which `from` has not
"#);
}
