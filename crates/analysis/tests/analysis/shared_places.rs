//! Temporaries share a buffer element by element: what the proof takes keeps its results when both
//! arrays are one, whatever their indices.
use kingpost_analysis::Analysis;
use kingpost_interp::{Memory, interpret};
use kingpost_ir::Kernel;

/// A generator of small numbers (Knuth's constants for 64 bits).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    /// An index by a loop over four, mostly in the half of the buffer that begins at `half`.
    fn index(&mut self, iname: &str, half: u64) -> String {
        let half = if self.below(5) == 0 { 6 - half } else { half };
        match self.below(3) {
            0 => format!("{} + {iname}", half + self.below(3)),
            1 => format!("{} - {iname}", half + 3 + self.below(3)),
            _ => format!("{}", half + self.below(6)),
        }
    }
}

/// Stores to `t` and `u`, reads of one into the other, and reads of both; in one loop or several.
fn program(random: &mut Random) -> String {
    let mut body =
        String::from("for z in 0..6\n  zero_t: T[z] = f64(z)\nfor w in 6..12\n  zero_u: U[w] = 2.0*f64(w)\n");
    for k in 0..3 {
        let iname = format!("i{k}");
        body += &format!("for {iname} in 0..4\n");
        for l in 0..=random.below(2) {
            let (t, u) = (random.index(&iname, 0), random.index(&iname, 6));
            body += &match random.below(4) {
                0 => format!("  s{k}{l}: U[{u}] = T[{t}] + 1.0\n"),
                1 => format!("  s{k}{l}: T[{t}] = 2.0*U[{u}]\n"),
                2 => format!("  s{k}{l}: U[{u}] = a[{iname}]\n"),
                _ => format!("  s{k}{l}: b[{k}, {iname}] = T[{t}] + U[{u}]\n"),
            };
        }
    }
    let (t, u) = (random.index("e", 0), random.index("e", 6));
    body += &format!("for e in 0..4\n  end: b[3, e] = T[{t}] + U[{u}]\n");
    body
}

fn kernel(declared: &str, body: &str) -> Kernel {
    let text = format!("kernel k\n\narg a: f64[4] in\narg b: f64[4, 4] inout\n{declared}\n{body}");
    kingpost_ir::text::parse(&text).unwrap()
}

/// What the kernel stores; none if it reads what nothing wrote.
fn stored(kernel: &Kernel) -> Option<Vec<f64>> {
    let mut memory = Memory::new();
    memory.set("a", vec![0.25, 0.5, 0.75, 1.25]);
    memory.set("b", vec![0.0; 16]);
    interpret(kernel, &mut memory).ok()?;
    Some(memory.f64s("b").unwrap().to_vec())
}

#[test]
fn what_may_share_a_buffer_keeps_its_results_in_one() {
    let mut random = Random(7);
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..600 {
        let body = program(&mut random);
        let own = body.replace("T[", "t[").replace("U[", "u[");
        let apart = kernel("temp t: f64[12] private\ntemp u: f64[12] private\n", &own);
        let shared =
            kernel("temp t: f64[12] private storage(one)\ntemp u: f64[12] private storage(one)\n", &own);
        // values that nothing wrote are another matter
        let Some(expected) = stored(&apart) else { continue };
        if Analysis::of(&shared).check_storage().is_err() {
            refused += 1;
            continue;
        }
        taken += 1;
        let one = kernel("temp one: f64[12] private\n", &body.replace(['T', 'U'], "one"));
        assert_eq!(stored(&one), Some(expected), "{shared}");
    }
    assert!(taken > 40 && refused > 40, "{taken} taken, {refused} refused");
}
