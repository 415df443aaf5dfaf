//! Work done ahead of its use: many threads make things, one takes them in order.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// How far and with how many hands to work ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ahead {
    /// Threads that make things.
    pub threads: usize,
    /// Things made and not yet taken, at most.
    pub window: usize,
    /// Whether nothing is made while things are taken: where maker and taker share the cores,
    /// timings would suffer otherwise. A window is then made and taken as a whole before the next
    /// one.
    pub in_rounds: bool,
}

struct State<T> {
    /// Next job to begin.
    next: usize,
    /// Next one to take.
    taken: usize,
    made: BTreeMap<usize, T>,
    stopped: bool,
}

/// Ends the makers when the taker leaves, however it does.
struct StopOnExit<'a, T>(&'a Mutex<State<T>>, &'a Condvar);

impl<T> Drop for StopOnExit<'_, T> {
    fn drop(&mut self) {
        lock(self.0).stopped = true;
        self.1.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No invariant spans two statements under the lock.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ahead {
    /// Gives `take` the result of `make` for each job, in the order of the jobs, until it breaks.
    ///
    /// `take` runs on the calling thread, while `make` runs on others. `make` must not panic. Where
    /// things are made in rounds, `begin` is asked before each whether it may begin, and what it
    /// gives is kept while things are made.
    pub(super) fn run<J: Sync, T: Send, G>(
        self,
        jobs: &[J],
        begin: impl Fn() -> Option<G>,
        make: impl Fn(&J) -> T + Sync,
        mut take: impl FnMut(&J, T) -> ControlFlow<()>,
    ) {
        let round = if self.in_rounds { self.window.max(1) } else { jobs.len().max(1) };
        for jobs in jobs.chunks(round) {
            if self.run_round(jobs, &begin, &make, &mut take).is_break() {
                break;
            }
        }
    }

    fn run_round<J: Sync, T: Send, G>(
        self,
        jobs: &[J],
        begin: &impl Fn() -> Option<G>,
        make: &(impl Fn(&J) -> T + Sync),
        take: &mut impl FnMut(&J, T) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let state = Mutex::new(State { next: 0, taken: 0, made: BTreeMap::new(), stopped: false });
        let changed = Condvar::new();
        let window = self.window.max(1);
        let round = match self.in_rounds.then(begin) {
            Some(None) => return ControlFlow::Break(()),
            begun => begun,
        };
        std::thread::scope(|scope| {
            let _stop = StopOnExit(&state, &changed);
            for _ in 0..self.threads.max(1).min(jobs.len()) {
                scope.spawn(|| maker(&state, &changed, jobs, window, make));
            }
            if self.in_rounds {
                let all = |s: &mut State<T>| s.made.len() < jobs.len();
                drop(changed.wait_while(lock(&state), all).unwrap_or_else(PoisonError::into_inner));
            }
            drop(round);
            for (k, job) in jobs.iter().enumerate() {
                let waiting = changed.wait_while(lock(&state), |s| !s.made.contains_key(&k));
                let mut guard = waiting.unwrap_or_else(PoisonError::into_inner);
                guard.taken = k + 1;
                let thing = guard.made.remove(&k);
                drop(guard);
                changed.notify_all();
                if let Some(thing) = thing {
                    take(job, thing)?;
                }
            }
            ControlFlow::Continue(())
        })
    }
}

fn maker<J, T>(
    state: &Mutex<State<T>>,
    changed: &Condvar,
    jobs: &[J],
    window: usize,
    make: &(impl Fn(&J) -> T + Sync),
) {
    loop {
        let too_far = |s: &mut State<T>| !s.stopped && s.next < jobs.len() && s.next >= s.taken + window;
        let mut guard = changed.wait_while(lock(state), too_far).unwrap_or_else(PoisonError::into_inner);
        let k = guard.next;
        let Some(job) = jobs.get(k).filter(|_| !guard.stopped) else { return };
        guard.next += 1;
        drop(guard);
        let thing = make(job);
        lock(state).made.insert(k, thing);
        changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, clippy::unwrap_used)]

    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Says for how long things are made.
    struct Round<'m>(&'m Mutex<bool>);

    impl<'m> Round<'m> {
        fn begin(making: &'m Mutex<bool>) -> Self {
            *making.lock().unwrap() = true;
            Self(making)
        }
    }

    impl Drop for Round<'_> {
        fn drop(&mut self) {
            *self.0.lock().unwrap() = false;
        }
    }

    fn ahead(threads: usize, window: usize, in_rounds: bool) -> Ahead {
        Ahead { threads, window, in_rounds }
    }

    #[test]
    fn everything_arrives_in_order_and_no_further_ahead_than_asked() {
        let jobs: Vec<usize> = (0..200).collect();
        for (threads, window) in [(1, 1), (4, 3), (8, 500)] {
            let (made, mut taken) = (AtomicUsize::new(0), 0);
            ahead(threads, window, false).run(
                &jobs,
                || Some(()),
                |j| {
                    made.fetch_add(1, Ordering::SeqCst);
                    j * j
                },
                |j, square| {
                    assert_eq!((*j, square), (taken, taken * taken));
                    taken += 1;
                    assert!(made.load(Ordering::SeqCst) <= taken + window);
                    ControlFlow::Continue(())
                },
            );
            assert_eq!(taken, jobs.len());
        }
    }

    #[test]
    fn nothing_is_made_while_a_round_is_taken() {
        let jobs: Vec<usize> = (0..50).collect();
        let made = AtomicUsize::new(0);
        let (begun, making) = (AtomicUsize::new(0), Mutex::new(false));
        let mut taken = Vec::new();
        ahead(3, 20, true).run(
            &jobs,
            || {
                begun.fetch_add(1, Ordering::SeqCst);
                Some(Round::begin(&making))
            },
            |_| {
                assert!(*making.lock().unwrap());
                made.fetch_add(1, Ordering::SeqCst)
            },
            |k, _| {
                assert!(!*making.lock().unwrap(), "job {k} is taken while others are made");
                let rounds = (k / 20 + 1) * 20;
                assert_eq!(made.load(Ordering::SeqCst), rounds.min(50), "job {k}");
                taken.push(*k);
                if *k == 45 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        );
        assert_eq!(taken, (0..=45).collect::<Vec<_>>());
        assert_eq!(begun.into_inner(), 3);
        let none = || None::<()>;
        ahead(3, 20, true).run(&jobs, none, |_| unreachable(), |_, ()| unreachable());
    }

    fn unreachable<T>() -> T {
        panic!("a round that may not begin")
    }

    #[test]
    fn makers_stop_when_the_taker_does() {
        let jobs: Vec<usize> = (0..1000).collect();
        let (made, mut taken) = (AtomicUsize::new(0), 0);
        ahead(4, 2, false).run(
            &jobs,
            || Some(()),
            |_| made.fetch_add(1, Ordering::SeqCst),
            |_, _| {
                taken += 1;
                if taken == 10 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        );
        assert_eq!(taken, 10);
        assert!(made.load(Ordering::SeqCst) <= 12);
        ahead(4, 2, false).run(&[], || Some(()), |()| (), |(), ()| ControlFlow::Continue(()));
    }
}
