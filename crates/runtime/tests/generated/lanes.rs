//! Random loops over lanes, whose accesses are often vectors.

use super::{Random, cases, compare, devices, random_memory, run};
use kingpost_codegen::PlacedKernel;
use kingpost_interp::interpret;
use kingpost_ir::text::parse;
use kingpost_sample::seed;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Draws the text of a kernel: a few loops over lanes, sums and scalars of each lane, two small
/// arrays.
pub(super) struct Draw<'r> {
    random: &'r mut Random,
    lanes: u64,
    first: u64,
    /// Elements from one iteration of the outer loop to the next.
    row: u64,
    /// Where the loop writes in a row.
    at: u64,
    /// Whether lanes have small arrays of their own: one loop, in which they can be declared.
    small: bool,
    /// Whether the value is of single precision, and may use such sums.
    single: bool,
    text: String,
}

impl Draw<'_> {
    fn below(&mut self, n: u64) -> u64 {
        self.random.next() % n
    }

    fn of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len() as u64) as usize]
    }

    pub(super) fn kernel(random: &mut Random) -> String {
        let lanes = [2, 4, 4, 8, 6, 16, 32, 3][(random.next() % 8) as usize];
        let groups = random.next().is_multiple_of(2);
        let row = lanes * (1 + random.next() % 2) + [0, 0, 0, 2, 1][(random.next() % 5) as usize];
        // rows of one work-item may overlap: the lanes of one vector still touch elements of their own
        let overlap = !groups && random.next().is_multiple_of(4);
        let row = match (groups, overlap) {
            (true, _) => row + 8,
            (false, true) => 1 + random.next() % lanes,
            (false, false) => row,
        };
        let mut draw =
            Draw { random, lanes, first: 0, row, at: 0, small: false, single: false, text: String::new() };
        draw.declarations(groups);
        let loops = 1 + draw.below(3);
        draw.small = groups && loops == 1;
        for k in 0..loops {
            draw.first = draw.of(&["0", "0", "0", "4", "1"]).parse().unwrap();
            draw.at = draw.below(5).saturating_sub(2);
            let end = draw.first + lanes;
            let _ = writeln!(draw.text, "  for v{k} in {}..{end} {{vector}}", draw.first);
            let v = format!("v{k}");
            draw.define(&v);
            for s in 0..1 + draw.below(5) {
                draw.statement(&v, &format!("{k}_{s}"));
            }
        }
        draw.text
    }

    fn declarations(&mut self, groups: bool) {
        let (row, lanes) = (self.row, self.lanes);
        let len = format!("{row}*n + {}", 3 * lanes + 16);
        self.text = "kernel lanes\nparam n: i32\n".to_owned();
        for (name, ty, direction) in [
            ("x", "f64", "in"),
            ("p", "f32", "in"),
            ("m", "i32", "in"),
            ("y", "f64", "inout"),
            ("q", "f32", "inout"),
            ("k", "i32", "inout"),
        ] {
            let _ = writeln!(self.text, "arg {name}: {ty}[{len}] {direction}");
        }
        let own = lanes + 4;
        let _ = write!(
            self.text,
            "temp t: f64 private\ntemp s: f32 private\ntemp e: i32 private\ntemp b: f64[3] private\n\
             temp o: f64[{own}] private\ntemp l: f64[{own}] local\n\nfor i in 0..n{}\n",
            if groups { " {g.0}" } else { "" }
        );
    }

    /// Gives the variables of a lane their first values.
    fn define(&mut self, v: &str) {
        let _ = write!(
            self.text,
            "    d_e_{v}: e = m[{0}*i + {v}] + {v} mod 2\n    d_t_{v}: t = x[{0}*i + {v}]\n    \
             d_s_{v}: s = p[{0}*i + {v} + 2]\n    d_o_{v}: o[{v}] = t\n    d_l_{v}: l[{v}] = t + 0.5\n",
            self.row
        );
        if self.small {
            let _ = writeln!(self.text, "    for c in 0..3\n      d_b: b[c] = f64(c)*t");
        }
    }

    fn statement(&mut self, v: &str, name: &str) {
        let (row, at) = (self.row, self.at);
        let own = format!("{row}*i + {v} + {at}");
        let targets = ["y", "y", "y", "q", "k", "t", "s", "o", "l", "b"];
        let target = self.of(&targets[..if self.small { 10 } else { 9 }]);
        self.single = matches!(target, "q" | "s");
        let op = self.of(&["=", "=", "+=", "*="]);
        let condition = match self.below(5) {
            0 => format!(" if {} < 0.3", self.real(v, 1)),
            1 => format!(" if x[{row}*i] < 0.2"),
            _ => String::new(),
        };
        let value = if target == "k" {
            format!("e + 3*m[{own}] - {v}")
        } else {
            let value = self.real(v, 3);
            if self.single { format!("f32({value})") } else { value }
        };
        let place = match target {
            "t" | "s" => target.to_owned(),
            "o" | "l" => format!("{target}[{v}]"),
            "b" => format!("b[{}]", self.below(3)),
            array => format!("{array}[{own}]"),
        };
        if self.below(4) == 0 && target != "k" {
            let factor = if self.small { format!("b[f_{name}]") } else { format!("x[f_{name}]") };
            let factor = if self.single { format!("f32({factor})") } else { factor };
            let _ = writeln!(self.text, "    for f_{name} in 0..2");
            let _ = writeln!(self.text, "      s{name}: {place} += {value}*{factor}{condition}");
            return;
        }
        let _ = writeln!(self.text, "    s{name}: {place} {op} {value}{condition}");
    }

    /// A number of the lane.
    fn real(&mut self, v: &str, depth: u32) -> String {
        if depth == 0 || self.below(4) == 0 {
            return self.leaf(v);
        }
        let (a, b) = (self.real(v, depth - 1), self.real(v, depth - 1));
        match self.below(9) {
            0 | 1 => format!("({a} + {b})"),
            2 => format!("({a} - {b})"),
            3 | 4 => format!("{a}*{b}"),
            5 => format!("fma({a}, {b}, 0.5)"),
            6 => format!("max({a}, min({b}, 0.75))"),
            7 => format!("select({a} < {b}, {a}, -{b})"),
            _ => format!("sqrt(fabs({a}))/2.0"),
        }
    }

    fn leaf(&mut self, v: &str) -> String {
        let (row, at) = (self.row, self.at);
        let c = self.below(5);
        match self.below(13) {
            0..=2 => format!("x[{row}*i + {v} + {c}]"),
            3 => format!("f64(p[{row}*i + {v} + {}])", 2 * c),
            4 => format!("x[m[{row}*i + {v}]]"),
            5 => format!("x[{row}*i + 2*{v} + {c}]"),
            6 => format!("x[{row}*i + {} - {v}]", self.first + self.lanes),
            7 => format!("y[{row}*i + {v} + {at}]"),
            8 => format!("f64({v})"),
            9 if self.single => format!("f64(s)*x[{row}*i + {c}]"),
            9 | 10 => "t".to_owned(),
            11 if self.small && c == 4 => "b[e mod 3]".to_owned(),
            11 if self.small => format!("(b[{}] - o[{v}])", c % 3),
            11 => format!("-o[{v}]"),
            _ => format!("(l[{v}] + f64(e))"),
        }
    }
}

/// What placement does not refuse computes the same on every device.
#[test]
fn lanes_agree_with_the_interpreter() {
    let seed = seed();
    let mut random = Random(seed);
    let devices = devices();
    let (cases, mut accepted) = (cases(24), 0);
    for _ in 0..cases {
        let text = Draw::kernel(&mut random);
        let kernel = parse(&text).unwrap_or_else(|e| panic!("seed {seed}: {}", e.render(&text)));
        if PlacedKernel::new(&kernel).is_err() {
            continue;
        }
        accepted += 1;
        let params = BTreeMap::from([("n".to_owned(), (random.next() % 4) as i64)]);
        let memory = random_memory(&kernel, &params, &mut random);
        let mut expected = memory.clone();
        interpret(&kernel, &mut expected).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
        for device in &devices {
            let found = run(&**device, &kernel, &memory);
            compare(&expected, &found)
                .unwrap_or_else(|e| panic!("seed {seed}, {}: {e}\n{text}", device.info().name));
        }
    }
    assert!(2 * accepted > cases, "only {accepted} of {cases} could be placed");
}
