//! `v . A u` on the Gmsh mesh against exact integrals, found without elements, quadrature or lowering.
//!
//! For linear functions `l` and `m` with values `l_i`, `m_i` at the vertices of a simplex `T` of dimension `d`,
//!
//! ```text
//! integral over T of l^a m^b = |T| d! a! b! / (a + b + d)! * [s^a t^b] of the product over i of 1/(1 - s l_i - t m_i)
//! ```
//!
//! (Baldoni, Berline, De Loera, Köppe & Vergne, *How to integrate a polynomial over a simplex*, Math. Comp. 80,
//! 2011). With `u = c l^p` and `v = d m^p` every operator of document 000 is a constant times such an integral.

#![allow(clippy::unwrap_used)]

use purlin::codegen::{Options, Target, generate};
use purlin::forms::form::Inputs;
use purlin::forms::lowering::{LoweringOptions, lower};
use purlin::forms::mesh::Mesh;
use purlin::forms::numbering::Numbering;
use purlin::kernels::Operator;
use purlin::runtime::open;
use purlin::{Loaded, Random, Strategy};
use std::path::Path;

type Vector = [f64; 3];
type Matrix = [Vector; 3];

/// `value + gradient . x`.
struct Linear {
    value: f64,
    gradient: Vector,
}

impl Linear {
    /// A random one that is of size one and positive on the bracket (coordinates in 0..8), so that nothing cancels.
    fn new(random: &mut Random) -> Self {
        let mut slope = || 0.05 * (0.6 + 0.4 * random.number());
        Self { gradient: [slope(), slope(), slope()], value: 0.3 }
    }

    fn at(&self, x: &[f64]) -> f64 {
        self.value + self.gradient.iter().zip(x).map(|(g, x)| g * x).sum::<f64>()
    }
}

fn factorial(n: usize) -> f64 {
    (1..=n).map(|k| k as f64).product()
}

/// The integral of `l^a m^b` over the mesh.
fn integral(mesh: &Mesh, l: &Linear, m: &Linear, a: usize, b: usize) -> f64 {
    let mut sum = 0.0;
    for cell in 0..mesh.n_cells() {
        let mut table = vec![vec![0.0; b + 1]; a + 1];
        table[0][0] = 1.0;
        for vertex in mesh.cell(cell) {
            let x = mesh.vertex(*vertex);
            let (li, mi) = (l.at(x), m.at(x));
            for s in 0..=a {
                for t in 0..=b {
                    let left = if s > 0 { li * table[s - 1][t] } else { 0.0 };
                    let below = if t > 0 { mi * table[s][t - 1] } else { 0.0 };
                    table[s][t] += left + below;
                }
            }
        }
        // The determinant is d! |T|.
        sum += mesh.determinant(cell) * table[a][b];
    }
    sum * factorial(a) * factorial(b) / factorial(a + b + 3)
}

fn outer(a: &Vector, b: &Vector) -> Matrix {
    a.map(|x| b.map(|y| x * y))
}

fn contract(a: &Matrix, b: &Matrix) -> f64 {
    a.iter().flatten().zip(b.iter().flatten()).map(|(x, y)| x * y).sum()
}

fn sum(a: &Matrix, b: &Matrix) -> Matrix {
    std::array::from_fn(|i| std::array::from_fn(|j| a[i][j] + b[i][j]))
}

fn scale(s: f64, a: &Matrix) -> Matrix {
    a.map(|row| row.map(|x| s * x))
}

fn transpose(a: &Matrix) -> Matrix {
    std::array::from_fn(|i| std::array::from_fn(|j| a[j][i]))
}

fn multiply(a: &Matrix, b: &Matrix) -> Matrix {
    std::array::from_fn(|i| std::array::from_fn(|j| (0..3).map(|k| a[i][k] * b[k][j]).sum()))
}

fn sym(a: &Matrix) -> Matrix {
    scale(0.5, &sum(a, &transpose(a)))
}

const UNIT: Matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

fn trace(a: &Matrix) -> f64 {
    a[0][0] + a[1][1] + a[2][2]
}

/// Values of the constants `lambda` and `mu` that this test gives.
const LAME: (f64, f64) = (0.7, 0.4);

/// The stress increment of document 000 (A.5–A.8) for the displacement gradient `g` in the direction `dg`.
fn stress(g: &Matrix, dg: &Matrix) -> Matrix {
    let material = |e: &Matrix| sum(&scale(LAME.0 * trace(e), &UNIT), &scale(2.0 * LAME.1, e));
    let f = sum(&UNIT, g);
    let e = scale(0.5, &sum(&multiply(&transpose(&f), &f), &scale(-1.0, &UNIT)));
    let de = sym(&multiply(&transpose(&f), dg));
    sum(&multiply(dg, &material(&e)), &multiply(&f, &material(&de)))
}

/// Everything a case needs.
struct Case {
    mesh: Mesh,
    degree: usize,
    l: Linear,
    m: Linear,
    /// Directions of `u` and `v`; the gradient of the displacement that hyperelasticity is linearised at.
    c: Vector,
    d: Vector,
    g: Matrix,
}

impl Case {
    fn exact(&self, operator: Operator) -> f64 {
        let p = self.degree;
        let gradients = |c: &Vector, d: &Vector| (outer(c, &self.l.gradient), outer(d, &self.m.gradient));
        let values = || integral(&self.mesh, &self.l, &self.m, p, p);
        let slopes = || (p * p) as f64 * integral(&self.mesh, &self.l, &self.m, p - 1, p - 1);
        let dot = self.l.gradient.iter().zip(&self.m.gradient).map(|(x, y)| x * y).sum::<f64>();
        let (du, dv) = gradients(&self.c, &self.d);
        match operator {
            Operator::Mass => values(),
            Operator::Laplace => dot * slopes(),
            Operator::Helmholtz => dot * slopes() + values(),
            Operator::Elasticity => contract(&sym(&du), &sym(&dv)) * slopes(),
            Operator::Hyperelasticity => contract(&stress(&self.g, &du), &dv) * slopes(),
        }
    }

    /// Degrees of freedom of `direction l^p`, or of `l^p` for scalars.
    fn power(&self, points: &[f64], l: &Linear, direction: &Vector, is_vector: bool) -> Vec<f64> {
        let value = |x: &[f64]| l.at(x).powi(self.degree as i32);
        let scalars = points.chunks(3).map(value);
        if is_vector { scalars.flat_map(|s| direction.map(|d| d * s)).collect() } else { scalars.collect() }
    }

    /// `v . A u` by a compiled kernel.
    fn computed(&self, operator: Operator) -> f64 {
        let numbering = Numbering::new(&self.mesh, self.degree).unwrap();
        let points = numbering.dof_points(&self.mesh);
        let u = self.power(&points, &self.l, &self.c, operator.is_vector());
        let v = self.power(&points, &self.m, &self.d, operator.is_vector());
        let linear = |x: &[f64]| self.g.map(|row| row.iter().zip(x).map(|(a, b)| a * b).sum::<f64>());
        let at = points.chunks(3).flat_map(linear).collect();
        let inputs = match operator {
            Operator::Hyperelasticity => Inputs::new().field("du", u).field("u", at),
            Operator::Mass | Operator::Helmholtz | Operator::Laplace | Operator::Elasticity => {
                Inputs::new().field("u", u)
            }
        };
        let inputs = inputs.constant("lambda", [LAME.0]).constant("mu", [LAME.1]);
        let form = operator.form(3, self.degree).unwrap();
        let lowered = lower(&form, &LoweringOptions::new("action")).unwrap();
        let (kernel, _) = Strategy::SingleCell.apply(&lowered.kernel).unwrap();
        let program = generate(&kernel, Target::C, &Options::default()).unwrap();
        let device = open("c").unwrap();
        let memory = lowered.bind(&self.mesh, &inputs).unwrap();
        let loaded = Loaded::new(&*device, &program, &memory).unwrap();
        loaded.launch().unwrap();
        loaded.f64s("y").unwrap().iter().zip(&v).map(|(y, v)| y * v).sum()
    }
}

#[test]
fn actions_are_exact_for_polynomials_on_the_bracket() {
    let seed = Random::fresh_seed();
    let mut random = Random::new(seed);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mesh = Mesh::read_gmsh(&root.join("meshes/bracket.msh")).unwrap();
    for (operator, degree) in [
        (Operator::Mass, 3),
        (Operator::Helmholtz, 2),
        (Operator::Laplace, 4),
        (Operator::Elasticity, 3),
        (Operator::Hyperelasticity, 2),
    ] {
        let (l, m) = (Linear::new(&mut random), Linear::new(&mut random));
        // Positive, so that nothing cancels; displacements of a tenth.
        let mut vector = |size: f64| -> Vector { std::array::from_fn(|_| size * (1.5 + random.number())) };
        let (c, d) = (vector(0.5), vector(0.5));
        let g = [vector(0.05), vector(0.05), vector(0.05)];
        let case = Case { mesh: mesh.clone(), degree, l, m, c, d, g };
        let (exact, computed) = (case.exact(operator), case.computed(operator));
        let error = ((computed - exact) / exact).abs();
        println!("{operator} P{degree}: {computed} {exact} {error:.1e}");
        // 1e-12: some 10⁵ terms of one sign, each right to some hundred roundings of 1e-16.
        assert!(exact.abs() > 1e-6 && error < 1e-12, "{operator} P{degree}, seed {seed}: {computed} {exact}");
    }
}

#[test]
fn the_closed_formula_integrates_by_hand() {
    let mesh = Mesh::unit_cube(2).unwrap();
    let x = Linear { value: 0.0, gradient: [1.0, 0.0, 0.0] };
    let y = Linear { value: 1.0, gradient: [0.0, 2.0, 0.0] };
    // ∫x³ = 1/4, ∫(1 + 2y)² = 13/3, both over the unit cube.
    let found = integral(&mesh, &x, &y, 3, 2);
    assert!((found - 13.0 / 12.0).abs() < 1e-14, "{found}");
}
