//! Where a flat mesh lies in space.

use std::fmt;

/// Where a line or a plane lies in space of three dimensions, with the axes of its coordinates.
///
/// The map from coordinates to positions is an isometry: lengths, angles and areas are those of
/// space.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    /// The position of coordinates 0.
    origin: [f64; 3],
    /// Unit vectors at right angles, one for each coordinate.
    axes: Vec<[f64; 3]>,
}

impl Placement {
    pub(super) const fn new(origin: [f64; 3], axes: Vec<[f64; 3]>) -> Self {
        Self { origin, axes }
    }

    /// The position of coordinates 0.
    #[must_use]
    pub const fn origin(&self) -> [f64; 3] {
        self.origin
    }

    /// Unit vectors at right angles, along which each coordinate grows.
    #[must_use]
    pub fn axes(&self) -> &[[f64; 3]] {
        &self.axes
    }

    /// The position in space of a point of the mesh.
    ///
    /// ```
    /// use kingpost_fem::mesh::Mesh;
    ///
    /// // a triangle in the plane z = 3
    /// let file = b"$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n3\n1 0 0 3\n2 1 0 3\n3 0 1 3\n$EndNodes
    /// $Elements\n1\n1 2 0 1 2 3\n$EndElements\n";
    /// let mesh = Mesh::from_gmsh(file)?;
    /// let placement = mesh.placement().ok_or("in the plane z = 0")?;
    /// assert_eq!(placement.to_string(), "the plane z = 3, of which x and y are the coordinates");
    /// assert_eq!(placement.position(mesh.vertex(2)), [0.0, 1.0, 3.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn position(&self, point: &[f64]) -> [f64; 3] {
        let along = self.vector(point);
        [0, 1, 2].map(|axis| self.origin[axis] + along[axis])
    }

    /// The vector in space with these components along the axes.
    #[must_use]
    pub fn vector(&self, components: &[f64]) -> [f64; 3] {
        let mut vector = [0.0; 3];
        for (axis, x) in self.axes.iter().zip(components) {
            vector.iter_mut().zip(axis).for_each(|(v, a)| *v += x * a);
        }
        vector
    }

    /// The coordinates of the foot of the perpendicular from a position.
    pub(super) fn coordinates(&self, position: &[f64; 3]) -> impl Iterator<Item = f64> {
        self.axes.iter().map(|axis| dot(axis, position))
    }
}

pub(super) fn dot(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// As a message says it: the plane or line, and what its coordinates are.
impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 3] = ["x", "y", "z"];
        let what = if self.axes.len() == 1 { "line" } else { "plane" };
        let along = |axis: &[f64; 3]| (0..3).find(|k| axis[*k] == 1.0);
        let of: Option<Vec<usize>> = self.axes.iter().map(along).collect();
        let Some(of) = of else {
            write!(f, "the {what} through {} along ", Triple(self.origin))?;
            for (k, axis) in self.axes.iter().enumerate() {
                write!(f, "{}{}", if k == 0 { "" } else { " and " }, Triple(*axis))?;
            }
            return f.write_str(", of which lengths in these directions are the coordinates");
        };
        let fixed = (0..3).filter(|axis| !of.contains(axis));
        let fixed: Vec<String> = fixed.map(|k| format!("{} = {}", NAMES[k], self.origin[k])).collect();
        let of: Vec<&str> = of.iter().map(|k| NAMES[*k]).collect();
        let are = if of.len() == 1 { "is the coordinate" } else { "are the coordinates" };
        write!(f, "the {what} {}, of which {} {are}", fixed.join(", "), of.join(" and "))
    }
}

/// Three numbers to four digits: what a person needs to find a plane again.
struct Triple([f64; 3]);

impl fmt::Display for Triple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers = self.0.map(|x| {
            let text = format!("{x:.4}");
            let text = text.trim_end_matches('0').trim_end_matches('.');
            if text == "-0" { "0".to_owned() } else { text.to_owned() }
        });
        write!(f, "({})", numbers.join(", "))
    }
}
