//! Dense matrices that share no code with the kernels.

#![allow(clippy::unwrap_used)] // what a failed test does

use kingpost_multigrid::{Dimension, Element, Line, Matrix};
use kingpost_runtime::{Backend, Device, open};
use kingpost_sample::is_long_run;
use nalgebra::{DMatrix, DVector};

/// Numbers between -1 and 1.
pub struct Random(pub u64);

impl Random {
    pub fn numbers(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.number()).collect()
    }

    fn number(&mut self) -> f64 {
        // xorshift64* (Vigna 2016)
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }
}

pub fn element(dimension: Dimension, degree: usize) -> Element {
    Element::new(dimension, degree).unwrap()
}

/// Whether a node lies inside, by its indices along each axis.
pub fn is_inner(node: usize, side: usize, axes: usize) -> bool {
    (0..axes).all(|axis| {
        let at = node / side.pow(axis as u32) % side;
        at > 0 && at + 1 < side
    })
}

pub fn inner_numbers(random: &mut Random, element: Element, cells: usize) -> Vec<f64> {
    let (side, axes) = (element.nodes_of_side(cells), element.dimension.axes());
    let mut numbers = random.numbers(element.nodes(cells));
    numbers.iter_mut().enumerate().for_each(|(node, x)| {
        if !is_inner(node, side, axes) {
            *x = 0.0;
        }
    });
    numbers
}

/// A matrix of the whole side: that of a cell, added up.
fn of_side(cell: &Matrix, degree: usize, cells: usize, factor: f64) -> DMatrix<f64> {
    let n = degree * cells + 1;
    let mut side = DMatrix::zeros(n, n);
    for c in 0..cells {
        for i in 0..=degree {
            for j in 0..=degree {
                side[(degree * c + i, degree * c + j)] += factor * cell.at(i, j);
            }
        }
    }
    side
}

/// The dense operator on all nodes, boundary included.
pub fn dense(element: Element, cells: usize) -> DMatrix<f64> {
    let line = Line::new(element.degree).unwrap();
    let h = 1.0 / cells as f64;
    let mass = of_side(&line.cell_mass, element.degree, cells, h);
    let stiffness = of_side(&line.cell_stiffness, element.degree, cells, 1.0 / h);
    match element.dimension {
        Dimension::Two => stiffness.kronecker(&mass) + mass.kronecker(&stiffness),
        Dimension::Three => {
            let masses = mass.kronecker(&mass);
            let mixed = stiffness.kronecker(&mass) + mass.kronecker(&stiffness);
            stiffness.kronecker(&masses) + mass.kronecker(&mixed)
        }
    }
}

/// Inner nodes of each patch of a colour.
pub fn patches(element: Element, cells: usize, colour: usize) -> Vec<Vec<usize>> {
    let (axes, side, k) = (element.dimension.axes(), element.nodes_of_side(cells), element.degree);
    let along = |axis: usize| (1 + (colour >> axis & 1)..cells).step_by(2);
    let mut vertices: Vec<Vec<usize>> = vec![Vec::new()];
    for axis in 0..axes {
        let longer = |v: &Vec<usize>| along(axis).map(|at| [&v[..], &[at]].concat()).collect::<Vec<_>>();
        vertices = vertices.iter().flat_map(longer).collect();
    }
    let inside = |vertex: &Vec<usize>| {
        let is_near = |node: &usize| {
            let at = |axis: usize| node / side.pow(axis as u32) % side;
            (0..axes).all(|axis| at(axis).abs_diff(k * vertex[axis]) < k)
        };
        (0..element.nodes(cells)).filter(is_near).collect()
    };
    vertices.iter().map(inside).collect()
}

/// What the inverse of a patch makes of the values at its nodes.
pub fn solved(a: &DMatrix<f64>, nodes: &[usize], values: &DVector<f64>) -> DVector<f64> {
    let local = DMatrix::from_fn(nodes.len(), nodes.len(), |i, j| a[(nodes[i], nodes[j])]);
    local.lu().solve(values).unwrap()
}

/// One colour of the smoother by dense patches: each is solved exactly.
pub fn dense_colour(a: &DMatrix<f64>, patches: &[Vec<usize>], x: &mut DVector<f64>, b: &DVector<f64>) {
    for nodes in patches {
        let residual = DVector::from_fn(nodes.len(), |i, _| b[nodes[i]] - (a.row(nodes[i]) * &*x)[0]);
        let correction = solved(a, nodes, &residual);
        nodes.iter().zip(correction.iter()).for_each(|(node, c)| x[*node] += c);
    }
}

pub fn largest(found: &[f64], expected: &[f64]) -> f64 {
    let scale = expected.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
    let off =
        found.iter().zip(expected).map(|(a, b)| if (a - b).is_nan() { f64::INFINITY } else { (a - b).abs() });
    off.fold(0.0, f64::max) / scale
}

pub const CASES: [(Dimension, usize, usize); 6] = [
    (Dimension::Two, 1, 4),
    (Dimension::Two, 2, 4),
    (Dimension::Two, 4, 2),
    (Dimension::Three, 1, 4),
    (Dimension::Three, 2, 2),
    (Dimension::Three, 3, 2),
];

/// C, and a card where there is one; OpenCL in long runs alone, as its compiler takes longer than
/// what a test is about.
pub fn devices() -> Vec<Box<dyn Device>> {
    let mut found = every_device();
    found.retain(|device| is_long_run() || device.info().backend != Backend::OpenCl);
    found
}

pub fn every_device() -> Vec<Box<dyn Device>> {
    let mut found = Vec::new();
    for name in ["c", "opencl", "cuda"] {
        match open(name) {
            Ok(device) => found.push(device),
            Err(why) => eprintln!("skipped: {why}"),
        }
    }
    found
}
