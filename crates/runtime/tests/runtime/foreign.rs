//! Memory that the caller owns.
#![allow(unsafe_code)]

use crate::programs::*;
use kingpost_runtime::{Arg, Foreign, Launch, Place, RuntimeError, Stream, TimingOptions, buffer_of};
use std::sync::Arc;

fn lent(values: &[f64]) -> Foreign<'_> {
    // SAFETY: the slice outlives the reference.
    unsafe { Foreign::new(Place::Host, values.as_ptr() as u64, size_of_val(values) as u64) }
}

fn lent_mut(values: &mut [f64]) -> Foreign<'_> {
    // SAFETY: the slice outlives the reference and is borrowed for as long.
    unsafe { Foreign::new(Place::Host, values.as_mut_ptr() as u64, size_of_val(values) as u64).writable() }
}

fn args<'a>(n: usize, x: Foreign<'a>, y: Foreign<'a>) -> [(&'a str, Arg<'a>); 4] {
    [("n", Arg::Param(n as i64)), ("a", Arg::F64(2.0)), ("x", Arg::Foreign(x)), ("y", Arg::Foreign(y))]
}

#[test]
fn results_are_where_their_owner_has_them() {
    each_device(|device, target| {
        let exe = device.compile(&axpy(target)).unwrap();
        for n in [0usize, 1, 65, 5000] {
            let (x, before) = (fresh(n), fresh(n));
            let mut y = before.clone();
            device.launch(&exe, &args(n, lent(&x), lent_mut(&mut y))).unwrap();
            for i in 0..n {
                let want = before[i] + (2.0 * x[i] + SHIFT[i % 4]);
                // 4 roundings of values below 8, contracted or not: 4 * 8 * 2^-53
                assert!((y[i] - want).abs() < 4e-15, "{target} n={n} i={i}: {} {want}", y[i]);
            }
        }
    });
}

#[test]
fn a_device_says_what_it_shares() {
    each_device(|device, target| {
        let host = device.shares(Place::Host);
        match target {
            kingpost_codegen::Target::C => assert!(host),
            kingpost_codegen::Target::Cuda => assert!(!host && device.shares(Place::Cuda)),
            kingpost_codegen::Target::OpenCl => assert!(!device.shares(Place::Cuda)),
            kingpost_codegen::Target::Hip => unreachable!("no device takes HIP"),
        }
    });
}

/// What the owner writes between launches is seen, and each launch adds once.
#[test]
fn a_prepared_launch_is_repeated() {
    each_device(|device, target| {
        let exe = device.compile(&axpy(target)).unwrap();
        for n in [0usize, 1, 65, 5000] {
            let (mut x, mut y) = (fresh(n), fresh(n));
            let mut want = y.clone();
            let (bytes, [at_x, at_y]) = (n as u64 * 8, [&mut x, &mut y].map(|v| v.as_mut_ptr() as u64));
            // SAFETY: both live to the end of the round, and are written between launches alone.
            let (from, to) = unsafe {
                (Foreign::new(Place::Host, at_x, bytes), Foreign::new(Place::Host, at_y, bytes).writable())
            };
            let prepared = Arc::new(device.prepare(&exe, &args(n, from, to)).unwrap());
            // the second launch reads what the first one wrote
            let twice = device.record(&[Arc::clone(&prepared), Arc::clone(&prepared)]).unwrap();
            for round in 0..4 {
                x.iter_mut().for_each(|v| *v += f64::from(round));
                let times = if round == 0 { 1.0 } else { 2.0 };
                want.iter_mut().enumerate().for_each(|(i, w)| *w += times * (2.0 * x[i] + SHIFT[i % 4]));
                match round {
                    0 => device.repeat(&prepared, None).unwrap(),
                    1 => device.replay(&twice, None).unwrap(),
                    _ => assert!(device.rerun(&twice).unwrap() >= 0.0),
                }
            }
            for i in 0..n {
                assert!((y[i] - want[i]).abs() < 8e-14, "{target} n={n} i={i}: {} {}", y[i], want[i]);
            }
        }
    });
}

#[test]
fn a_launch_is_prepared_as_it_is_launched() {
    each_device(|device, target| {
        let exe = device.compile(&axpy(target)).unwrap();
        let (x, mut y) = (vec![1.0; 64], vec![0.0; 64]);
        let error = device.prepare(&exe, &args(64, lent(&x), lent(&x))).err().unwrap();
        assert!(matches!(error, RuntimeError::ReadOnly { .. }), "{target}: {error}");
        let error = device.prepare(&exe, &args(65, lent(&x), lent_mut(&mut y))).err().unwrap();
        assert!(matches!(error, RuntimeError::BufferTooSmall { .. }), "{target}: {error}");
        let error = device.prepare(&exe, &args(64, lent(&x), lent_mut(&mut y))[..3]).err().unwrap();
        assert!(matches!(error, RuntimeError::MissingArgument { .. }), "{target}: {error}");
        let own = buffer_of(device, &x).unwrap();
        let mut given = args(64, lent(&x), lent_mut(&mut y));
        given[2].1 = Arg::Buffer(&own);
        let prepared = device.prepare(&exe, &given).unwrap();
        device.repeat(&prepared, None).unwrap();
        drop((prepared, given));
        assert_eq!(y[5], 2.0 + SHIFT[1], "{target}");
    });
}

#[test]
fn timing_runs_on_foreign_memory() {
    each_device(|device, target| {
        let exe = device.compile(&axpy(target)).unwrap();
        let (x, mut y) = (vec![0.0; 64], vec![0.0; 64]);
        let options = TimingOptions { warm_up: 1, min_runs: 3, min_seconds: 0.0, max_runs: 3 };
        let timing = device.time(&exe, &args(64, lent(&x), lent_mut(&mut y)), &options).unwrap();
        assert_eq!(timing.runs, 3, "{target}");
        assert_eq!(y[1], 4.0 * SHIFT[1], "{target}");
    });
}

#[test]
fn what_may_not_be_used_is_refused() {
    each_device(|device, target| {
        let exe = device.compile(&axpy(target)).unwrap();
        let (x, mut y) = (vec![0.0; 64], vec![0.0; 130]);
        let run = |args: &[(&str, Arg<'_>)]| device.launch(&exe, args).unwrap_err();
        let error = run(&args(64, lent(&x), lent(&x)));
        assert_eq!(
            error.to_string(),
            "argument `y` of `axpy` is written, and its memory is read-only; pass a writable array"
        );
        let error = run(&args(64, lent(&x), lent_mut(&mut y[..63])));
        assert!(matches!(error, RuntimeError::BufferTooSmall { found: 504, .. }), "{target}: {error}");

        // SAFETY: both lie in `y`; the launch is refused before it runs.
        let (low, high, odd, card) = unsafe {
            let at = y.as_mut_ptr() as u64;
            (
                Foreign::new(Place::Host, at, 64 * 8),
                Foreign::new(Place::Host, at + 63 * 8, 64 * 8).writable(),
                Foreign::new(Place::Host, at + 4, 64 * 8),
                Foreign::new(Place::Cuda, at & !15, 64 * 8),
            )
        };
        assert_eq!(low.bytes(), 64 * 8);
        let error = run(&args(64, low, high));
        assert!(matches!(error, RuntimeError::Aliased { .. }), "{target}: {error}");
        let error = run(&args(64, odd, high));
        assert!(matches!(error, RuntimeError::Misaligned { needed: 8, .. }), "{target}: {error}");
        if target != kingpost_codegen::Target::Cuda {
            let error = run(&args(64, card, high));
            assert!(
                error
                    .to_string()
                    .starts_with("argument `x` of `axpy` lies in the memory of a CUDA card, which `"),
                "{error}"
            );
            // SAFETY: the device has no streams, so that nothing uses it.
            let stream = Some(unsafe { Stream::new(1) });
            let error = device.launch_on(&exe, &args(64, lent(&x), high), stream).unwrap_err();
            assert!(matches!(error, RuntimeError::NoStreams { .. }), "{target}: {error}");
        }
    });
}

/// A copy for a launch would miss what the launches before it write.
#[test]
fn launches_in_turn_take_buffers_alone() {
    each_device(|device, target| {
        let exe = device.compile(&axpy(target)).unwrap();
        let (x, mut y) = ([1.0; 64], [0.0; 64]);
        let args = args(64, lent(&x), lent_mut(&mut y));
        let error = device.launch_all(&[Launch { executable: &exe, args: &args }]).unwrap_err();
        assert!(matches!(error, RuntimeError::ForeignInTurn { .. }), "{error}");
    });
}
