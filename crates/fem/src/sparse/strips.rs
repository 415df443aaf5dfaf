//! The cells around each degree of freedom as strips: most share a facet with the one before.

use super::owned::{SLICE, Slices, check_components, refused};
use super::sorted::sorted;
use super::{CsrPattern, PatternError};
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

/// The simplices around each degree of freedom, which stand for their vertices, in an order in
/// which a work-item goes from one to the next by one vertex, as in the triangle strips of computer
/// graphics.
///
/// A cell has as many vertices besides that of its owner as space has dimensions. A work-item holds
/// as many, each at a *place*, all of them the owner at first. A *round* replaces the vertex at
/// each place, one after the other. Some replacements complete a cell, which the owner and the
/// vertices at the places then are; each cell is completed once.
///
/// Numbers of degrees of freedom stand in slices of 32, as those of
/// [`OwnedRows`](super::OwnedRows).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strips {
    /// The first number of each degree of freedom, i32 `[dofs]`; the next ones stand 32 places
    /// apart.
    pub firsts: Vec<i32>,
    /// Numbers of each degree of freedom, i32 `[dofs]`: one more than its rounds, or none without a
    /// cell.
    pub counts: Vec<i32>,
    /// Where the column of the owner stands in its row, and after that its rounds, i32 `[numbers]`.
    /// A round has [`Strips::BITS`] bits for each place, the first lowest: where the column of the
    /// vertex stands in the row, and one bit more if it completes a cell.
    pub rounds: Vec<i32>,
}

impl Strips {
    /// Bits for a place of a round: three of them stand in a number that is not negative.
    pub const BITS: u32 = 10;

    /// What a place of a round is at least that completes a cell: entries of a row, at most.
    pub const CELL: i32 = 1 << (Self::BITS - 1);
}

/// Orders that are followed at a time. In a mesh of cubes of six tetrahedra, the 24 cells of a
/// vertex take 34 replacements with one of them, 33 with four, and with a thousand and all ways on
/// 31, which are as many rounds.
const FOLLOWED: usize = 4;

/// What facets of which none, one, two or more neighbours are left cost, in eighths of a
/// replacement: those that are left alone need a beginning of their own.
const LEFT: [i32; 4] = [8, 4, 1, 0];

/// Owners whose strips a thread finds at a time: those around which cells lie alike share them.
const OWNERS_OF_A_BLOCK: usize = 256 * SLICE;

/// The facets opposite to an owner, and which of them share all vertices but one.
struct Link {
    facets: Vec<Vec<i32>>,
    neighbours: Vec<Vec<usize>>,
}

/// Facets that were taken in an order.
#[derive(Clone)]
struct Taken {
    left: Vec<bool>,
    /// The vertices at the places.
    held: Vec<i32>,
    /// What replaces a vertex, place by place, and whether that completes a cell.
    replacements: Vec<(i32, bool)>,
    /// What the facets that are left cost.
    cost: i32,
}

impl Link {
    fn new(facets: Vec<Vec<i32>>) -> Self {
        let are_neighbours = |a: &[i32], b: &[i32]| {
            let mut rest = b.to_vec();
            let is_shared =
                |v: &&i32| rest.iter().position(|w| w == *v).map(|at| rest.swap_remove(at)).is_some();
            a.iter().filter(is_shared).count() + 1 == a.len()
        };
        let of = |k: usize| {
            let others = (0..facets.len()).filter(|j| *j != k);
            others.filter(|j| are_neighbours(&facets[k], &facets[*j])).collect()
        };
        let neighbours = (0..facets.len()).map(of).collect();
        Self { facets, neighbours }
    }

    fn cost(&self, facet: usize, left: &[bool]) -> i32 {
        let n = self.neighbours[facet].iter().filter(|j| left[**j]).count();
        LEFT[n.min(LEFT.len() - 1)]
    }

    /// How the cost changes where a facet is taken.
    fn change(&self, facet: usize, left: &mut [bool]) -> i32 {
        let around = |left: &[bool]| -> i32 {
            let near = self.neighbours[facet].iter().filter(|j| left[**j]);
            near.map(|j| self.cost(*j, left)).sum()
        };
        let before = self.cost(facet, left) + around(left);
        left[facet] = false;
        let after = around(left);
        left[facet] = true;
        after - before
    }

    /// The replacements that complete each facet once, beginning with an owner at all places: of
    /// the orders that are followed, facet by facet, the shortest.
    fn replacements(&self, own: i32) -> Vec<(i32, bool)> {
        let Some(places) = self.facets.first().map(Vec::len) else { return Vec::new() };
        let left = vec![true; self.facets.len()];
        let cost = (0..self.facets.len()).map(|k| self.cost(k, &left)).sum();
        let mut followed = vec![Taken { left, held: vec![own; places], replacements: Vec::new(), cost }];
        for _ in 0..self.facets.len() {
            let mut ways: Vec<(i32, usize, usize, Vec<i32>)> = Vec::new();
            for (state, taken) in followed.iter_mut().enumerate() {
                let ends = self.nearest(taken);
                for (facet, vertices) in ends {
                    let cost = taken.cost + self.change(facet, &mut taken.left);
                    let steps = taken.replacements.len() + vertices.len();
                    let orders = orders(&vertices).into_iter();
                    ways.extend(orders.map(|order| (8 * steps as i32 + cost, state, facet, order)));
                }
            }
            ways.sort_unstable();
            let mut next: Vec<Taken> = Vec::with_capacity(FOLLOWED);
            for (_, state, facet, vertices) in ways {
                let on = self.on(followed[state].clone(), facet, &vertices);
                let is_same = |other: &Taken| {
                    (&other.held, &other.left) == (&on.held, &on.left)
                        && other.replacements.len() % places == on.replacements.len() % places
                };
                if !next.iter().any(is_same) {
                    next.push(on);
                }
                if next.len() == FOLLOWED {
                    break;
                }
            }
            followed = next;
        }
        let shortest = followed.into_iter().map(|taken| taken.replacements).min_by_key(Vec::len);
        shortest.unwrap_or_else(Vec::new) // at least one is followed
    }

    /// The facets that are left and complete with the fewest vertices, and these.
    fn nearest(&self, taken: &Taken) -> Vec<(usize, Vec<i32>)> {
        let left = (0..self.facets.len()).filter(|k| taken.left[*k]);
        let mut ends: Vec<(usize, Vec<i32>)> = left.map(|k| (k, taken.missing(&self.facets[k]))).collect();
        let fewest = ends.iter().map(|(_, missing)| missing.len()).min();
        ends.retain(|(_, missing)| Some(missing.len()) == fewest);
        ends
    }

    /// Completes a facet by vertices.
    fn on(&self, mut taken: Taken, facet: usize, vertices: &[i32]) -> Taken {
        taken.cost += self.change(facet, &mut taken.left);
        taken.left[facet] = false;
        for (k, vertex) in vertices.iter().enumerate() {
            let place = taken.replacements.len() % taken.held.len();
            taken.held[place] = *vertex;
            taken.replacements.push((*vertex, k + 1 == vertices.len()));
        }
        taken
    }
}

impl Taken {
    /// The vertices of a facet that have to come: those at the places that are replaced last stay,
    /// one after the other, as long as the facet has them.
    fn missing(&self, facet: &[i32]) -> Vec<i32> {
        let (places, next) = (facet.len(), self.replacements.len());
        let mut missing = facet.to_vec();
        for back in 1..places {
            let held = self.held[(next + places - back) % places];
            match missing.iter().position(|v| *v == held) {
                Some(at) => missing.swap_remove(at),
                None => break,
            };
        }
        missing
    }
}

/// The vertices in all orders.
fn orders(vertices: &[i32]) -> Vec<Vec<i32>> {
    vertices.iter().fold(vec![Vec::new()], |orders, next| {
        let with = |order: Vec<i32>| {
            (0..=order.len()).map(move |at| [&order[..at], &[*next], &order[at..]].concat())
        };
        orders.into_iter().flat_map(with).collect()
    })
}

/// The numbers of an owner: where its own column stands, and its rounds; of its cells, which vertex
/// of each it is, before where the columns of all stand.
fn numbers(cells: &[i32], columns: usize) -> Vec<i32> {
    let cells = || cells.chunks_exact(1 + columns).map(|cell| (cell[0] as usize, &cell[1..]));
    let Some((at, slots)) = cells().next() else { return Vec::new() };
    let (own, places) = (slots[at], columns - 1);
    let facets = cells().map(|(own, slots)| [&slots[..own], &slots[own + 1..]].concat()).collect();
    let replacements = Link::new(facets).replacements(own);
    let round = |round: &[(i32, bool)]| {
        // places after the last replacement take the owner, and complete nothing
        let missing = (round.len()..places).map(|_| (own, false));
        let all = round.iter().copied().chain(missing).enumerate();
        all.fold(0, |number, (place, (slot, is_cell))| {
            number | (slot | if is_cell { Strips::CELL } else { 0 }) << (Strips::BITS * place as u32)
        })
    };
    std::iter::once(own).chain(replacements.chunks(places).map(round)).collect()
}

impl CsrPattern {
    /// The cells around each degree of freedom as strips, of a space whose degrees of freedom are
    /// at the vertices of simplices, with a given number of components each.
    ///
    /// # Errors
    /// [`PatternError::Invalid`]: a pattern of other components, of entities that are no intervals,
    /// triangles or tetrahedra, a row of more than [`Strips::CELL`] entries, more rounds than 32
    /// bits count.
    pub fn strips(&self, components: [usize; 2]) -> Result<Strips, PatternError> {
        let [rows, columns] = check_components(self, components)?;
        if rows != columns || !(2..=4).contains(&columns) {
            let found = format!("strips of entities of {rows} by {columns} degrees of freedom");
            return Err(refused(found, "those at the vertices of simplices; use turned or owned rows"));
        }
        let longest = self.longest_row();
        if longest > Strips::CELL as usize {
            let needed = format!("at most {}; use turned or owned rows", Strips::CELL);
            return Err(refused(format!("strips and a row of {longest} entries"), &needed));
        }
        let n_owners = self.block_starts.len().saturating_sub(1);
        let (starts, order) = sorted(&self.owners, n_owners);
        // what the strips of an owner follow from: of each cell, which vertex it is, and where all are
        let describe = |owner: usize, cells: &mut Vec<i32>| {
            cells.clear();
            for pair in &order[starts[owner] as usize..starts[owner + 1] as usize] {
                let pair = *pair as usize;
                let slot = |block: &i32| (block - self.block_starts[owner]) * self.components[1] as i32;
                cells.push((pair % rows) as i32);
                cells.extend(self.blocks[pair * columns..(pair + 1) * columns].iter().map(slot));
            }
        };
        let of_block = |block: usize| {
            let mut known: HashMap<Vec<i32>, Arc<[i32]>> = HashMap::new();
            let mut cells = Vec::new();
            let owners = block * OWNERS_OF_A_BLOCK..n_owners.min((block + 1) * OWNERS_OF_A_BLOCK);
            let numbers_of = |owner: usize| {
                describe(owner, &mut cells);
                if let Some(found) = known.get(&cells) {
                    return found.clone();
                }
                let found: Arc<[i32]> = numbers(&cells, columns).into();
                known.insert(cells.clone(), found.clone());
                found
            };
            owners.map(numbers_of).collect::<Vec<Arc<[i32]>>>()
        };
        let blocks = 0..n_owners.div_ceil(OWNERS_OF_A_BLOCK);
        let all: Vec<Arc<[i32]>> = blocks.into_par_iter().flat_map_iter(of_block).collect();
        let counts: Vec<i32> = all.iter().map(|numbers| numbers.len() as i32).collect();
        let Slices { firsts, counts, n_pairs } = Slices::of_counts(counts)?;
        let mut rounds = vec![0; n_pairs];
        for (first, numbers) in firsts.iter().zip(&all) {
            for (turn, number) in numbers.iter().enumerate() {
                rounds[*first as usize + SLICE * turn] = *number;
            }
        }
        Ok(Strips { firsts, counts, rounds })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::mesh::Mesh;
    use crate::sparse::CsrPart;
    use kingpost_sample::is_long_run;
    use std::path::Path;

    /// The pattern of the vertices of simplices.
    fn pattern(cells: &[Vec<i32>], components: usize) -> CsrPattern {
        let map: Vec<i32> = cells.concat();
        let size = map.iter().max().unwrap() + 1;
        let part = CsrPart { extents: [cells[0].len(); 2], rows: &map, columns: &map };
        CsrPattern::of_part([size as usize; 2], [components; 2], part).unwrap()
    }

    /// The vertices of all cells, each beginning with another one than the last.
    fn cells_of(mesh: &Mesh) -> Vec<Vec<i32>> {
        let n = mesh.shape().n_vertices();
        let cells = mesh.all_cell_nodes().chunks(n).map(|cell| cell.iter().map(|v| *v as i32).collect());
        let turned = cells.enumerate().map(|(k, mut cell): (usize, Vec<i32>)| {
            cell.rotate_left(k % n);
            cell
        });
        turned.collect()
    }

    /// Each cell of a degree of freedom is completed once, and no other is; gives the replacements.
    fn check(cells: &[Vec<i32>], components: usize) -> usize {
        let pattern = pattern(cells, components);
        let strips = pattern.strips([components; 2]).unwrap();
        let places = cells[0].len() - 1;
        let n_owners = (pattern.row_starts.len() - 1) / components;
        let mut around = vec![Vec::new(); n_owners];
        for cell in cells {
            let mut sorted = cell.clone();
            sorted.sort_unstable();
            cell.iter().for_each(|v| around[*v as usize].push(sorted.clone()));
        }
        let mut replacements = 0;
        for (owner, mut expected) in around.into_iter().enumerate() {
            let row = pattern.row_starts[components * owner] as usize;
            let vertex = |slot: i32| pattern.columns[row + slot as usize] / components as i32;
            let count = strips.counts[owner] as usize;
            let numbers = (0..count).map(|turn| strips.rounds[strips.firsts[owner] as usize + SLICE * turn]);
            let mut completed = Vec::new();
            let mut held = vec![owner as i32; places];
            for (turn, number) in numbers.enumerate() {
                assert!(number >= 0);
                if turn == 0 {
                    assert_eq!(vertex(number), owner as i32);
                    continue;
                }
                for (place, held_there) in (0..places).map(|place| (place, number >> (10 * place) & 1023)) {
                    held[place] = vertex(held_there % Strips::CELL);
                    if held_there >= Strips::CELL {
                        let mut cell = [&held[..], &[owner as i32]].concat();
                        cell.sort_unstable();
                        completed.push(cell);
                    }
                }
            }
            replacements += count.saturating_sub(1) * places;
            completed.sort();
            expected.sort();
            assert_eq!(completed, expected, "around {owner}");
        }
        replacements
    }

    #[test]
    fn each_cell_around_a_vertex_is_completed_once() {
        let cube = cells_of(&Mesh::unit_cube(3).unwrap());
        // 192 vertices and cells, of which an inner vertex takes 33
        assert!(check(&cube, 1) < 9 * 4 * cube.len() / 5, "{}", check(&cube, 1));
        check(&cells_of(&Mesh::unit_cube(2).unwrap()), 3);
        let square = cells_of(&Mesh::unit_square(4).unwrap());
        assert!(check(&square, 1) <= 2 * 3 * square.len(), "{}", check(&square, 1));
        check(&[vec![0, 1], vec![2, 1], vec![2, 3]], 2);
    }

    #[test]
    fn vertices_may_have_any_cells_around_them() {
        check(&[vec![3, 0, 2, 1]], 1);
        // cells that share a vertex alone, an edge alone, and one vertex without any
        check(&[vec![0, 1, 2, 3], vec![4, 5, 0, 6], vec![8, 6, 5, 9]], 1);
        // three around one facet, and one of them twice
        check(&[vec![0, 1, 2, 3], vec![0, 1, 2, 4], vec![5, 1, 2, 0], vec![2, 1, 0, 5]], 1);
        let fan = |k: i32| vec![0, 2 + k, 2 + (k + 1) % 150, 1];
        check(&(0..150).map(fan).collect::<Vec<_>>(), 1);
    }

    #[test]
    fn an_unstructured_mesh_has_strips() {
        let bracket = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../meshes/bracket.msh"));
        let cells = cells_of(&Mesh::read_gmsh(bracket).unwrap());
        let cells = &cells[..if is_long_run() { cells.len() } else { cells.len() / 4 }];
        let replacements = check(cells, 1) as f64 / (4 * cells.len()) as f64;
        // a part has more vertices without cells on all sides
        let most = if is_long_run() { 1.6 } else { 2.0 };
        assert!(replacements < most, "{replacements} replacements a cell");
    }

    #[test]
    fn the_rounds_of_a_vertex_inside_a_cube_are_few() {
        let cells = cells_of(&Mesh::unit_cube(2).unwrap());
        let strips = pattern(&cells, 1).strips([1, 1]).unwrap();
        assert!(strips.counts[13] <= 13, "{} numbers", strips.counts[13]);
    }

    #[test]
    fn other_entities_and_longer_rows_are_refused() {
        let refused =
            |pattern: CsrPattern, components: usize| pattern.strips([components; 2]).unwrap_err().to_string();
        let quadratic = refused(pattern(&[(0..10).collect()], 1), 1);
        assert!(quadratic.contains("entities of 10 by 10 degrees of freedom"), "{quadratic}");
        let fan: Vec<Vec<i32>> = (0..520).map(|k| vec![0, 1 + k, 2 + k]).collect();
        let long = refused(pattern(&fan, 1), 1);
        assert!(long.contains("a row of 522 entries, needed at most 512"), "{long}");
        let other = refused(pattern(&[vec![0, 1, 2]], 2), 1);
        assert!(other.contains("blocks of [2, 2] numbers"), "{other}");
    }
}
