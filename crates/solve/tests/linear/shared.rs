//! Cells in parts that share degrees of freedom.

#![allow(clippy::unwrap_used, clippy::needless_range_loop)] // parts go by number

use kingpost_fem::element::CellShape;
use kingpost_fem::mesh::Mesh;
use kingpost_fem::numbering::Numbering;
use kingpost_sample::Random;
use kingpost_solve::{Partition, SharedPart, SolveError};

/// What a cell adds to a degree of freedom: whole numbers, so that sums are exact.
fn term(cell: usize, j: usize) -> i64 {
    (31 * cell + 7 * j + 1) as i64
}

#[test]
fn parts_add_up_to_the_whole() {
    let mut random = Random::new();
    for (shape, degree, parts) in
        [(CellShape::Triangle, 2, 1), (CellShape::Quadrilateral, 3, 2), (CellShape::Hexahedron, 2, 5)]
    {
        let mesh = Mesh::unit(shape, 4).unwrap();
        let numbering = Numbering::new(&mesh, degree).unwrap();
        let (n, width, map) = (numbering.n_dofs(), numbering.dofs_per_cell(), numbering.dofs());
        let n_free = n - n / 7;
        let part_of: Vec<u32> = (0..mesh.n_cells() as u32)
            .map(|cell| if cell < parts { cell } else { (random.bits() % u64::from(parts)) as u32 })
            .collect();
        let all = SharedPart::all((map, width), (n, n_free), &part_of, parts as usize).unwrap();
        let mut expected = vec![0; n];
        for (place, dof) in map.iter().enumerate() {
            expected[*dof as usize] += term(place / width, place % width);
        }
        let own: Vec<Vec<i64>> = all
            .iter()
            .map(|part| {
                let mut sums = vec![0; part.dofs.len()];
                for (place, dof) in part.map.iter().enumerate() {
                    sums[*dof as usize] += term(part.cells[place / width] as usize, place % width);
                }
                sums
            })
            .collect();
        let mut owners = vec![0; n];
        for (rank, part) in all.iter().enumerate() {
            let mut sums = own[rank].clone();
            for (peer, places) in &part.peers {
                let other = &all[*peer];
                let back = &other.peers.iter().find(|(back, _)| *back == rank).unwrap().1;
                assert_eq!(places.len(), back.len());
                for (place, there) in places.iter().zip(back) {
                    let (here, there) = (part.shared[*place as usize], other.shared[*there as usize]);
                    assert_eq!(part.dofs[here as usize], other.dofs[there as usize]);
                    sums[here as usize] += own[*peer][there as usize];
                }
            }
            for (place, dof) in part.dofs[..part.n_free].iter().enumerate() {
                assert_eq!(sums[place], expected[*dof as usize], "{shape} {rank} {dof}");
                owners[*dof as usize] += usize::from(place < part.n_owned);
            }
            assert!(part.dofs[part.n_free..].iter().all(|dof| *dof as usize >= n_free));
            let outer = &part.map[..part.n_outer * width];
            assert!(part.shared.iter().all(|dof| outer.contains(dof)));
            let inner = &part.map[part.n_outer * width..];
            assert!(!inner.iter().any(|dof| part.shared.contains(dof)));
        }
        assert!(owners[..n_free].iter().all(|owners| *owners == 1));
        assert_eq!(all.iter().map(|part| part.cells.len()).sum::<usize>(), mesh.n_cells());
    }
}

#[test]
fn parts_without_cells_are_refused() {
    let refused =
        |part_of: &[u32], parts| SharedPart::all((&[0, 1, 1, 2], 2), (3, 3), part_of, parts).unwrap_err();
    assert!(matches!(refused(&[0], 1), SolveError::Length { found: 1, needed: 2, .. }));
    assert!(matches!(refused(&[0, 2], 2), SolveError::NoSuchPart { part: 2, parts: 2 }));
    assert!(matches!(refused(&[0, 0], 2), SolveError::Parts { dofs: 2, parts: 2 }));
    let owners = |owners: &[u32], parts| Partition::of_owners(owners.to_vec(), parts);
    assert!(matches!(owners(&[0, 3], 2), Err(SolveError::NoSuchPart { part: 3, parts: 2 })));
    assert!(matches!(owners(&[0], 2), Err(SolveError::Parts { dofs: 1, parts: 2 })));
    let partition = owners(&[1, 0, 1], 2).unwrap();
    assert_eq!((partition.counts(), partition.owner(2), partition.place(2)), (&[1, 2][..], 1, 1));
}
