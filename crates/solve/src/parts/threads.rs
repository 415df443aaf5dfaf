//! Threads of parts.

use crate::SolveError;

/// Does something for each part, the first in the caller's thread and each other in one of its own. Of
/// errors, the first that has a cause of its own: that another part `has_ended` is none.
///
/// # Errors
/// What a part returns; [`SolveError::PartEnded`] of one that panics.
pub fn in_parts<I: Send, T: Send, E: Send + From<SolveError>>(
    parts: impl Iterator<Item = I>,
    first: impl FnOnce(I) -> Result<T, E>,
    others: impl Fn(I) -> Result<T, E> + Sync,
    has_ended: impl Fn(&E) -> bool,
) -> Result<Vec<T>, E> {
    let (mut parts, others) = (parts, &others);
    let results: Vec<Result<T, E>> = std::thread::scope(|scope| {
        let own = parts.next();
        let threads: Vec<_> = parts.map(|part| scope.spawn(move || others(part))).collect();
        let own = own.map(first);
        let ended = |part| Err(SolveError::PartEnded { part }.into());
        let joined = (1..).zip(threads).map(|(part, thread)| thread.join().unwrap_or_else(|_| ended(part)));
        own.into_iter().chain(joined).collect()
    });
    let (mut done, mut ended) = (Vec::new(), None);
    for result in results {
        match result {
            Ok(value) => done.push(value),
            Err(error) if has_ended(&error) => ended = Some(error),
            Err(error) => return Err(error),
        }
    }
    ended.map_or(Ok(done), Err)
}
