//! Which symbols the integer program factorises.

use kingpost_strategies::SharingGraph;

fn factorised(symbols: usize, products: &[(usize, usize)]) -> usize {
    let symbols = (0..symbols).map(|k| format!("s{k}")).collect();
    let graph = SharingGraph { symbols, products: products.iter().copied().collect() };
    let chosen = graph.factorised().unwrap_or_default();
    assert!(graph.products.iter().all(|(a, b)| chosen.contains(a) || chosen.contains(b)));
    chosen.len()
}

/// `b_j c_i + b_j d_i` of Figure 2, two products apart, and all pairs of three and four symbols.
#[test]
fn as_few_symbols_as_cover_all_products() {
    assert_eq!(factorised(3, &[(0, 1), (0, 2)]), 1);
    assert_eq!(factorised(4, &[(0, 2), (1, 3)]), 2);
    let all: Vec<_> = (0..3).flat_map(|a| (3..7).map(move |b| (a, b))).collect();
    assert_eq!(factorised(7, &all), 3);
    assert_eq!(factorised(2, &[]), 0);
}

/// The relaxation of a cycle of odd length takes a half of each symbol.
#[test]
fn halves_are_no_solution() {
    assert_eq!(factorised(5, &[(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]), 3);
}
