//! How well predicted times rank measured ones.

/// Ranks from 1; equal values share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    while first < order.len() {
        let equal = order[first..].iter().take_while(|k| values[**k] == values[order[first]]).count();
        let mean = first as f64 + (equal as f64 + 1.0) / 2.0;
        for k in &order[first..first + equal.max(1)] {
            ranks[*k] = mean;
        }
        first += equal.max(1);
    }
    ranks
}

/// Spearman's rank correlation of pairs: 1 if both orders agree, -1 if one is the other's reverse;
/// none if there are fewer than two pairs or one side is constant.
#[must_use]
pub fn rank_correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    let side = |f: fn(&(f64, f64)) -> f64| ranks(&pairs.iter().map(f).collect::<Vec<_>>());
    let (a, b) = (side(|p| p.0), side(|p| p.1));
    let mean = (pairs.len() as f64 + 1.0) / 2.0;
    let product =
        |x: &[f64], y: &[f64]| -> f64 { x.iter().zip(y).map(|(x, y)| (x - mean) * (y - mean)).sum() };
    let size = (product(&a, &a) * product(&b, &b)).sqrt();
    (size > 0.0).then(|| product(&a, &b) / size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreement_is_one_reversal_minus_one_and_ties_share_ranks() {
        let pairs = |f: fn(f64) -> f64| (0..9).map(|k| (f64::from(k), f(f64::from(k)))).collect::<Vec<_>>();
        assert_eq!(rank_correlation(&pairs(|x| x.exp())), Some(1.0));
        assert_eq!(rank_correlation(&pairs(|x| -x)), Some(-1.0));
        assert_eq!(rank_correlation(&pairs(|_| 1.0)), None);
        assert_eq!(rank_correlation(&[(1.0, 1.0)]), None);
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [3.5, 1.0, 3.5, 2.0]);
        // The classical formula 1 - 6*sum(d^2)/(n*(n^2 - 1)) where nothing ties: d = (0, 1, 1, 0),
        // n = 4
        let some = [(1.0, 1.0), (2.0, 3.0), (3.0, 2.0), (4.0, 4.0)];
        assert!(rank_correlation(&some).is_some_and(|r| (r - 0.8).abs() < 1e-12));
    }
}
