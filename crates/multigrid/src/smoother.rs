//! The smoother of a level: patches one after the other, or all at once under a polynomial.

use crate::MultigridError;
use crate::arguments::taken;
use crate::hierarchy::Hierarchy;
use crate::level::At;
use crate::on_mesh::MeshArrays;
use crate::operation::Blocks;
use crate::options::{Order, Relaxation};
use kingpost_runtime::{Arg, Buffer, Executable};
use kingpost_solve::{Call, Queue};

/// Factors of the old direction and of what is added to it, of each step.
///
/// # Source
/// Saad 2003, Algorithm 12.1, for eigenvalues in an interval.
fn chebyshev([least, largest]: [f64; 2], degree: u32) -> Vec<[f64; 2]> {
    let (centre, half) = (0.5 * (largest + least), 0.5 * (largest - least));
    let ratio = centre / half;
    let mut rho = 1.0 / ratio;
    let mut steps = vec![[0.0, 1.0 / centre]];
    for _ in 1..degree {
        let next = 1.0 / (2.0 * ratio - rho);
        steps.push([next * rho, 2.0 * next / half]);
        rho = next;
    }
    steps
}

/// The degree of the polynomial that is at most `reduction` on an interval, at least 1.
fn degree_for([least, largest]: [f64; 2], reduction: f64) -> u32 {
    let ratio = (largest + least) / (largest - least);
    let degree = ((1.0 / reduction).acosh() / ratio.acosh()).ceil();
    (degree as u32).clamp(1, MOST_COARSE_STEPS) // 1 of an interval that is a point
}

/// What the error on the coarsest level of a deformed mesh is reduced by, at least, and the most steps
/// that are taken to it.
const COARSE_REDUCTION: f64 = 1e-3;
const MOST_COARSE_STEPS: u32 = 60;

impl Hierarchy<'_> {
    /// One step of the smoother: one colour after the other, all its patches in parallel. Returns its
    /// seconds by the device's clock.
    ///
    /// # Errors
    /// A failing driver.
    ///
    /// # Source
    /// Cui et al. 2024, Algorithm 2.3.
    pub fn smooth(&self, level: usize, order: Order) -> Result<f64, MultigridError> {
        let mut queue = Queue::new();
        self.smooth_in(self.at(level), order, &mut queue);
        self.run(&queue)
    }

    pub(crate) fn smooth_in<'a>(&'a self, at: At<'a>, order: Order, queue: &mut Queue<'a>) {
        if let Some(neighbours) = &self.neighbours {
            return self.smooth_slab(neighbours, at, queue);
        }
        let colours = 1_usize << self.element().dimension.axes();
        match (self.relaxation(), at.polynomial) {
            (Relaxation::Additive { degree }, Some(vectors)) => {
                let largest = colours as f64 * at.mesh.map_or(1.0, |mesh| mesh.bounds[1]);
                let steps = chebyshev([0.25 * largest, largest], degree);
                self.polynomial_in(at, vectors, (&steps, colours), &self.smooth, queue);
            }
            _ => match order {
                Order::Forward => self.colours_in(at, 0..colours, order, queue),
                Order::Backward => self.colours_in(at, (0..colours).rev(), order, queue),
            },
        }
    }

    /// A polynomial in the operator, preconditioned by the sum over all patches of the first colours.
    fn polynomial_in<'a>(
        &'a self,
        at: At<'a>,
        [d, z]: &'a [Buffer; 2],
        (steps, colours): (&[[f64; 2]], usize),
        smoother: &'a [(Blocks, Executable)],
        queue: &mut Queue<'a>,
    ) {
        queue.push(self.cleared(at, d));
        for factors in steps {
            self.residual_in(at, queue);
            queue.push(self.cleared(at, z));
            for colour in 0..colours {
                self.colour_in(At { x: z, ..at }, colour, Order::Forward, smoother, queue);
            }
            queue.push(self.advanced(at, [d, z, at.x], *factors));
        }
    }

    /// The patches of some colours, one after the other: those around the vertices of which bit `a`
    /// of a colour is that of their place along axis `a`, less one. Returns the seconds.
    ///
    /// # Errors
    /// A failing driver.
    pub fn smooth_colours(
        &self,
        level: usize,
        colours: impl Iterator<Item = usize>,
    ) -> Result<f64, MultigridError> {
        let mut queue = Queue::new();
        self.colours_in(self.at(level), colours, Order::Forward, &mut queue);
        self.run(&queue)
    }

    pub(crate) fn colours_in<'a>(
        &'a self,
        at: At<'a>,
        colours: impl Iterator<Item = usize>,
        order: Order,
        queue: &mut Queue<'a>,
    ) {
        for colour in colours {
            self.colour_in(at, colour, order, &self.smooth, queue);
        }
    }

    /// The coarsest level has one patch, which is solved exactly, or on a deformed mesh by Chebyshev's
    /// iteration; that of several cubes in a row has steps of the smoother.
    pub(crate) fn solve_in<'a>(&'a self, at: At<'a>, queue: &mut Queue<'a>) {
        if let Some(neighbours) = &self.neighbours {
            return (0..neighbours.steps).for_each(|_| self.smooth_slab(neighbours, at, queue));
        }
        if let (Some(mesh), Some(vectors)) = (at.mesh, at.polynomial) {
            let steps = chebyshev(mesh.bounds, degree_for(mesh.bounds, COARSE_REDUCTION));
            return self.polynomial_in(at, vectors, (&steps, 1), &self.coarse, queue);
        }
        let solver = if self.coarse.is_empty() { &self.smooth } else { &self.coarse };
        self.colour_in(at, 0, Order::Forward, solver, queue);
    }

    fn colour_in<'a>(
        &'a self,
        at: At<'a>,
        colour: usize,
        order: Order,
        smoother: &'a [(Blocks, Executable)],
        queue: &mut Queue<'a>,
    ) {
        for (blocks, executable) in smoother {
            let mut places = self.places(*blocks, colour);
            if order == Order::Backward {
                places.reverse();
            }
            for place in places {
                let args = self.smoothing(at, (colour, place, None), *blocks, executable);
                queue.push(Call::new(executable, args));
            }
        }
    }

    /// The places in a patch that a kernel works on one after the other: of points, those that no
    /// patch of a colour before has had.
    fn places(&self, blocks: Blocks, colour: usize) -> Vec<[i64; 3]> {
        if blocks != Blocks::Points {
            return vec![[0; 3]];
        }
        let k = self.element().degree as i64;
        let mut places = vec![[0; 3]];
        for axis in (0..self.element().dimension.axes()).rev() {
            // patches of the first colour have all nodes but those between two of them
            let along = if colour >> axis & 1 == 0 { 1..=2 * k - 1 } else { k..=k };
            let with = |place: &[i64; 3], at: i64| {
                let mut place = *place;
                place[axis] = at;
                place
            };
            places = places.iter().flat_map(|p| along.clone().map(move |at| with(p, at))).collect();
        }
        places
    }

    /// The arguments of a kernel on the patches of a colour, or on some layers of them: the first of
    /// a slab, and how many.
    pub(crate) fn smoothing<'a>(
        &'a self,
        at: At<'a>,
        (colour, place, layers): (usize, [i64; 3], Option<[usize; 2]>),
        blocks: Blocks,
        executable: &Executable,
    ) -> Vec<(&'a str, Arg<'a>)> {
        let m = &self.matrices;
        let (mass, stiffness) = match blocks {
            Blocks::Cells => (&m.cell_mass, &m.cell_stiffness),
            Blocks::Patches | Blocks::Points => (&m.mass, &m.stiffness),
        };
        let mut args = vec![
            ("n", Arg::Param(at.slab.cells as i64)),
            ("nl", Arg::Param(at.slab.layers() as i64)),
            ("scale", self.scale(at)),
            ("x", Arg::Buffer(at.x)),
            ("b", Arg::Buffer(at.b)),
            ("r", Arg::Buffer(at.r)),
            ("res", Arg::Buffer(at.r)),
            ("A", Arg::Buffer(stiffness)),
            ("M", Arg::Buffer(mass)),
            ("S", Arg::Buffer(&m.eigenvectors)),
            ("lambda", Arg::Buffer(&m.eigenvalues)),
        ];
        args.extend(at.mesh.into_iter().flat_map(MeshArrays::args));
        let names = ["T", "blend", "flux", "inverses"].into_iter();
        args.extend(m.blending.iter().flat_map(|of| names.clone().zip(of.iter().map(Arg::Buffer))));
        args.extend(m.inverse.as_ref().map(|inverse| ("V", Arg::Buffer(inverse))));
        let axes = self.element().dimension.axes();
        let first = |axis: usize| match layers {
            Some([first, _]) if axis + 1 == axes => first as i64,
            Some(_) | None => (colour >> axis & 1) as i64,
        };
        let names = ["c0", "c1", "c2"].into_iter().enumerate().take(axes);
        args.extend(names.map(|(axis, name)| (name, Arg::Param(first(axis)))));
        args.extend(layers.map(|[_, count]| ("nz", Arg::Param(count as i64))));
        let along = ["r0", "r1", "r2"].into_iter().zip(place).take(axes);
        args.extend(along.map(|(name, at)| (name, Arg::Param(at))));
        taken(executable, args)
    }
}

#[cfg(test)]
mod tests {
    use super::{chebyshev, degree_for};

    /// The error polynomial at an eigenvalue, by the recurrence of the steps.
    fn error(eigenvalue: f64, steps: &[[f64; 2]]) -> f64 {
        let (mut x, mut d) = (0.0, 0.0);
        for [old, new] in steps {
            d = old * d + new * (1.0 - eigenvalue * x);
            x += d;
        }
        1.0 - eigenvalue * x
    }

    /// The degree is the least for which the polynomial is small on the interval.
    #[test]
    fn degrees_reduce_as_much_as_is_asked() {
        for bounds in [[0.9, 1.1], [0.5, 1.5], [0.1, 1.5]] {
            let degree = degree_for(bounds, 1e-3);
            let at_end = |degree| error(bounds[1], &chebyshev(bounds, degree)).abs();
            assert!(at_end(degree) <= 1e-3 && at_end(degree - 1) > 1e-3, "{bounds:?}: {degree}");
        }
        assert_eq!(degree_for([1.0, 1.0], 1e-3), 1);
        assert!(error(1.0, &chebyshev([1.0, 1.0], 1)).abs() < 1e-15);
    }

    #[test]
    fn polynomials_are_those_of_chebyshev() {
        for degree in 1..=5 {
            let steps = chebyshev([2.0, 8.0], degree);
            assert_eq!(steps.len(), degree as usize);
            let polynomial = |x: f64| -> f64 {
                let t = (5.0 - x) / 3.0; // from 2 to 8
                let n = f64::from(degree);
                if t.abs() <= 1.0 {
                    (n * t.acos()).cos()
                } else {
                    t.signum().powi(degree as i32) * (n * t.abs().acosh()).cosh()
                }
            };
            for step in 0..=40 {
                let x = 0.25 * f64::from(step);
                let expected = polynomial(x) / polynomial(0.0);
                assert!((error(x, &steps) - expected).abs() < 1e-12, "degree {degree} at {x}");
            }
        }
    }
}
