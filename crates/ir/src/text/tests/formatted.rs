//! What the formatter sets, and what it keeps.

use crate::text::{format, parse};
use kingpost_sample::{SampleConfig, arbitrary_kernel, config};
use proptest::prelude::*;

#[track_caller]
fn check(source: &str, expected: &str) {
    let found = format(source).expect("its tokens are sound");
    assert_eq!(found, expected);
    assert_eq!(format(&found).expect("its tokens are sound"), found, "twice is once");
}

#[test]
fn blanks() {
    check(
        "kernel k\narg  x : f64[ n ,3]in strides( 3,1 )\n\ns :x[i,0]+=- 2.0 * ( y-z )/f64( i )if not(i<3 and - i>-4){ atomic }\n",
        "kernel k\n\narg x: f64[n, 3] in strides(3, 1)\n\ns: x[i, 0] += -2.0*(y - z)/f64(i) if not (i < 3 and -i > -4) {atomic}\n",
    );
    check("t min = max (1, 2)\nx [0]argmin=B(inf,0)\n", "t min= max(1, 2)\nx[0] argmin= B(inf, 0)\n");
    check("let t=1\nr:t or=x . y\n( q,r )=p\n", "let t = 1\nr: t or= x.y\n(q, r) = p\n");
    check(
        "for i in max (0,- n) .. n - 1 where ( i mod 2==0 ){ l . 0 }\n",
        "for i in max(0, -n)..n - 1 where (i mod 2 == 0) {l.0}\n",
    );
    check(
        "operator f(a:B,b:B):=a identity - inf{associative}\nextern g( x:f64 )->f64:=x code(\n\"return x;\")\n",
        "operator f(a: B, b: B) := a identity -inf {associative}\nextern g(x: f64) -> f64 := x code (\n  \"return x;\")\n",
    );
    check(
        "callee c\n code cuda needs ( sm_80 )  memory(x:local) (\n\"a  b\"\n    )\n",
        "callee c\n  code cuda needs(sm_80) memory(x: local) (\n    \"a  b\"\n  )\n",
    );
}

#[test]
fn empty_lines() {
    check(
        "\n\nkernel k\nparam n: i32\n\n\nrule r() := 1\ns: x = 1\ntable t = [1]\n\n\n",
        "kernel k\n\nparam n: i32\n\nrule r() := 1\n\ns: x = 1\n\ntable t = [1]\n",
    );
    check(
        "kernel k\nparam n: i32\n# why\nfor i in 0..n\n",
        "kernel k\n\nparam n: i32\n\n# why\nfor i in 0..n\n",
    );
    check(
        "kernel k\nparam n: i32\n# of n\n\nfor i in 0..n\n",
        "kernel k\n\nparam n: i32\n# of n\n\nfor i in 0..n\n",
    );
}

#[test]
fn blocks_and_brackets() {
    check(
        "for i in 0..n\n     for j in 0..n\n         s: x = 1\n     t: x = 2\nu: x = 3\n",
        "for i in 0..n\n  for j in 0..n\n    s: x = 1\n  t: x = 2\nu: x = 3\n",
    );
    check("s: x = f(\n a, g(\nb),\n      c\n)\n", "s: x = f(\n  a, g(\n    b),\n  c\n)\n");
    check("table t = [\n1,2,\n\n3]\n", "table t = [\n  1, 2,\n\n  3]\n");
}

#[test]
fn comments_stay() {
    check(
        "#!top  \nfor i in 0..n # a \"loop\"\n# inside\n   s: x = \"# no\"#comment\n   # at the end\n\n  # too\n# below\nt: x = 1\n  # last",
        "#!top\nfor i in 0..n  # a \"loop\"\n  # inside\n  s: x = \"# no\"  #comment\n  # at the end\n\n# too\n# below\nt: x = 1\n# last\n",
    );
    // comments that stand below each other still do, as far as the next empty line
    check(
        "a  =1   # x\nb = 1\nlonger = 1 # z\ncccc = 1 # y\n\nd = 1   # w\n",
        "a = 1  # x\nb = 1\nlonger = 1  # z\ncccc = 1  # y\n\nd = 1  # w\n",
    );
    check("a = 1   # x\nbbb = 1 # y\n", "a = 1    # x\nbbb = 1  # y\n");
    check("s: x = f( # one\n# two\n 1)\r\n", "s: x = f(  # one\n  # two\n  1)\n");
}

#[test]
fn mistakes_of_layout_are_errors() {
    for (source, message) in [
        ("\tfor i in 0..n\n", "1:1: a tab in the indentation; indent with spaces"),
        ("x = (1\n", "1:5: `(` is never closed; write `)` before the end of the statement"),
        ("x = 1 @ 2\n", "1:7: `@` has no meaning here"),
    ] {
        assert_eq!(format(source).expect_err("it has no layout").to_string(), message);
    }
    // any other mistake is the parser's
    check("for for\n", "for for\n");
}

proptest! {
    #![proptest_config(config(128))]

    /// Blanks, deeper blocks, empty lines and comments at random change no kernel, and the formatter takes all but
    /// the comments away.
    #[test]
    fn any_layout(sample in arbitrary_kernel(SampleConfig::default()), widths in prop::collection::vec(0..4_usize, 64)) {
        let text = sample.kernel.to_string();
        let mut widths = widths.iter().copied().cycle();
        let mut scrambled = String::new();
        for line in text.lines() {
            let indent = line.len() - line.trim_start().len();
            let mut blanks = || " ".repeat(widths.next().unwrap_or(0));
            scrambled += &" ".repeat(indent * 2);
            match line.contains('"') {
                true => scrambled += &format!("{} ", line.trim_start()), // a label may have blanks inside
                false => scrambled.extend(line.split_whitespace().map(|word| format!("{word} {}", blanks()))),
            }
            scrambled += if line.is_empty() { "\n" } else { "# c\n" };
        }
        let expected = parse(&text).expect("well formed");
        let found = format(&scrambled).expect("its tokens are sound");
        prop_assert_eq!(parse(&found).expect("well formed"), expected);
        prop_assert_eq!(format(&found).expect("its tokens are sound"), found.clone());
        let comments = text.lines().filter(|line| !line.is_empty()).count();
        prop_assert_eq!(found.matches("# c").count(), comments);
        let code = found.lines().map(|line| line.split_once("# c").map_or(line, |(code, _)| code.trim_end()));
        prop_assert_eq!(code.map(|line| format!("{line}\n")).collect::<String>(), text);
    }
}
