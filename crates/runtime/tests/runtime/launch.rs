//! Results, timing, memory.

use crate::programs::*;
use kingpost_runtime::{Arg, Launch, RuntimeError, TimingOptions};

#[test]
fn axpy_equals_the_host() {
    each_device(|device, target| {
        let exe = device.compile(&axpy(target)).unwrap();
        for n in [1usize, 63, 64, 65, 10_000] {
            let (x, y, a) = (fresh(n), fresh(n), 1.75);
            let (bx, by) = (put(device, &x), put(device, &y));
            let args = [
                ("y", Arg::Buffer(&by)),
                ("x", Arg::Buffer(&bx)),
                ("n", Arg::Param(n as i64)),
                ("a", Arg::F64(a)),
            ];
            device.launch(&exe, &args).unwrap();
            for (i, got) in get(device, &by).into_iter().enumerate() {
                let want = y[i] + (a * x[i] + SHIFT[i % 4]);
                // 4 roundings of values below 8, contracted or not: 4 * 8 * 2^-53
                assert!((got - want).abs() < 4e-15, "{target} n={n} i={i}: {got} {want}");
            }
        }
    });
}

#[test]
fn atomic_sums_equal_the_host() {
    each_device(|device, target| {
        let exe = device.compile(&histogram(target)).unwrap();
        let n = 5000;
        // Multiples of 2^-10 below 1: every partial sum is exact, so the order does not matter.
        let x: Vec<f64> = fresh(n).iter().map(|v| (v * 1024.0).round() / 1024.0).collect();
        let (bx, sums) = (put(device, &x), put(device, &[0.0; 3]));
        let args = [("n", Arg::Param(n as i64)), ("x", Arg::Buffer(&bx)), ("sums", Arg::Buffer(&sums))];
        device.launch(&exe, &args).unwrap();
        let want: Vec<f64> = (0..3).map(|r| x.iter().skip(r).step_by(3).sum()).collect();
        assert_eq!(get(device, &sums), want, "{target}");
    });
}

#[test]
fn a_grid_of_zero_groups_runs_nothing_and_cannot_be_timed() {
    each_device(|device, target| {
        let exe = device.compile(&axpy(target)).unwrap();
        let (x, y) = (device.allocate(0).unwrap(), device.allocate(0).unwrap());
        let args =
            [("n", Arg::Param(0)), ("a", Arg::F64(1.0)), ("x", Arg::Buffer(&x)), ("y", Arg::Buffer(&y))];
        device.launch(&exe, &args).unwrap();
        let error = device.time(&exe, &args, &TimingOptions::default()).unwrap_err();
        assert!(matches!(error, RuntimeError::NothingToTime { .. }), "{error}");
    });
}

#[test]
fn launches_in_turn_run_in_order_or_not_at_all() {
    each_device(|device, target| {
        let exe = device.compile(&axpy(target)).unwrap();
        let n = 1000;
        let (x, y, z) = (put(device, &vec![1.0; n]), put(device, &vec![0.0; n]), put(device, &vec![0.0; n]));
        let args = |x, y, n| {
            [("n", Arg::Param(n)), ("a", Arg::F64(1.0)), ("x", Arg::Buffer(x)), ("y", Arg::Buffer(y))]
        };
        let (first, second, none) = (args(&x, &y, 1000), args(&y, &z, 1000), args(&x, &y, 0));
        let launch = |args| Launch { executable: &exe, args };
        let seconds = device.launch_all(&[launch(&first), launch(&none), launch(&second)]).unwrap();
        assert!(seconds > 0.0, "{seconds}");
        // the second adds to SHIFT what the first added to SHIFT: 1 + 0.5 and 0.5 more
        assert_eq!((get(device, &y)[0], get(device, &z)[0]), (1.5, 2.0), "{target}");
        assert!(device.launch_all(&[]).unwrap() >= 0.0);

        let long = args(&x, &y, 1001);
        let error = device.launch_all(&[launch(&first), launch(&long)]).unwrap_err();
        assert!(matches!(error, RuntimeError::BufferTooSmall { .. }), "{error}");
        assert_eq!(get(device, &y)[0], 1.5, "{target}: the first ran, although the second was refused");
    });
}

#[test]
fn timing_counts_runs_and_seconds() {
    each_device(|device, target| {
        let exe = device.compile(&axpy(target)).unwrap();
        let n = 100_000;
        let (x, y) = (put(device, &vec![1.0; n]), put(device, &vec![0.0; n]));
        let args = [
            ("n", Arg::Param(n as i64)),
            ("a", Arg::F64(1.0)),
            ("x", Arg::Buffer(&x)),
            ("y", Arg::Buffer(&y)),
        ];
        let options = TimingOptions { warm_up: 2, min_runs: 5, min_seconds: 0.0, max_runs: 100 };
        let timing = device.time(&exe, &args, &options).unwrap();
        assert_eq!((timing.runs, timing.seconds.len()), (5, 5));
        assert!(0.0 < timing.min_s && timing.min_s <= timing.median_s && timing.median_s <= timing.max_s);
        // 7 runs added 1 + SHIFT[0] each, so the runs really happened.
        assert_eq!(get(device, &y)[0], 7.0 * 1.5);
    });
}

#[test]
fn memory_is_poisoned_filled_and_copied() {
    each_device(|device, target| {
        let n = 1000;
        let a = device.allocate(8 * n as u64).unwrap();
        assert!(get(device, &a).iter().all(|v| v.is_nan()), "{target}");
        let values = fresh(n);
        let b = put(device, &values);
        device.copy(&b, &a).unwrap();
        assert_eq!(get(device, &a), values);
        device.fill(&b, 0).unwrap();
        assert_eq!(get(device, &b), vec![0.0; n]);
        let error = device.upload(&a, &[0; 7]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "upload: 7 bytes given, 8000 bytes to receive them; the two must be equal"
        );
        let small = device.allocate(8).unwrap();
        assert!(matches!(device.copy(&a, &small), Err(RuntimeError::TransferSize { .. })));
        assert!(matches!(device.download(&a, &mut [0; 9]), Err(RuntimeError::TransferSize { .. })));
    });
}

#[test]
fn an_impossible_allocation_is_refused() {
    each_device(|device, target| {
        let error = device.allocate(1 << 60).unwrap_err();
        assert!(matches!(error, RuntimeError::Allocation { .. }), "{target}: {error}");
    });
}

#[test]
fn a_compile_error_shows_the_log() {
    each_device(|device, target| {
        let mut program = axpy(target);
        program.source = program.source.replace("shift[i % 4]", "planted_mistake");
        let error = device.compile(&program).unwrap_err();
        assert!(matches!(error, RuntimeError::Compile { .. }), "{target}: {error}");
        let RuntimeError::Compile { place: Some(place), .. } = &error else { panic!("{target}: {error}") };
        let number = 1 + program.source.lines().position(|l| l.contains("planted_mistake")).unwrap();
        let line = program.source.lines().nth(number - 1).unwrap().trim();
        assert!(place.starts_with(&format!("line {number}, `{line}`: ")), "{target}: {place}");
        assert!(place.matches("planted_mistake").count() == 2, "{target}: {place}");
        let start =
            "bug of kingpost, unless code of an intrinsic is at fault: the code of `axpy` does not compile";
        assert!(error.to_string().starts_with(start), "{target}: {error}");
    });
}

#[test]
fn a_wrong_entry_point_is_named() {
    each_device(|device, target| {
        let mut program = axpy(target);
        program.entry = "other".into();
        let error = device.compile(&program).unwrap_err();
        assert!(matches!(error, RuntimeError::NoEntry { .. }), "{target}: {error}");
        assert!(error.to_string().contains("`other"), "{target}: {error}");
    });
}

#[test]
fn devices_and_unknown_names_are_listed() {
    let entries = kingpost_runtime::devices();
    assert!(entries.iter().any(|e| e.device.as_ref().is_ok_and(|d| d.selector() == "c")));
    for name in ["vulkan", "opencl:x", "opencl:999", "c:1"] {
        let Err(error) = kingpost_runtime::open(name) else { panic!("`{name}` opened") };
        assert!(matches!(error, RuntimeError::UnknownDevice { .. }), "{error}");
        assert!(error.to_string().contains(name) && error.to_string().contains("there are: `"), "{error}");
    }
}

#[test]
fn elements_of_every_type_come_back() {
    use kingpost_runtime::{Element, buffer_of, download_values};
    fn check<T: Element + PartialEq + std::fmt::Debug>(device: &dyn kingpost_runtime::Device, values: &[T]) {
        let buffer = buffer_of(device, values).unwrap();
        assert_eq!(buffer.bytes(), T::TYPE.bytes() * values.len() as u64);
        assert_eq!(download_values::<T>(device, &buffer).unwrap(), values);
    }
    each_device(|device, _| {
        let x = fresh(101);
        check(device, &x);
        check(device, &x.iter().map(|&v| v as f32).collect::<Vec<_>>());
        check(device, &x.iter().map(|&v| (v * 2e9) as i32).collect::<Vec<_>>());
        check(device, &x.iter().map(|&v| (v * 9e18) as i64).collect::<Vec<_>>());
        check::<f64>(device, &[]);
        let odd = device.allocate(12).unwrap();
        assert!(matches!(download_values::<f64>(device, &odd), Err(RuntimeError::TransferSize { .. })));
    });
}

#[test]
fn threads_share_a_device() {
    each_device(|device, target| {
        std::thread::scope(|scope| {
            for n in [100, 1000, 3000] {
                scope.spawn(move || {
                    let mut program = histogram(target);
                    // Another source, so that every thread compiles.
                    program.source.push_str(&format!("/* {n} */\n"));
                    let exe = device.compile(&program).unwrap();
                    let (x, sums) = (put(device, &vec![1.0; 3 * n]), put(device, &[0.0; 3]));
                    let args = [
                        ("n", Arg::Param(3 * n as i64)),
                        ("x", Arg::Buffer(&x)),
                        ("sums", Arg::Buffer(&sums)),
                    ];
                    device.launch(&exe, &args).unwrap();
                    assert_eq!(get(device, &sums), [n as f64; 3]);
                });
            }
        });
    });
}

#[test]
fn threads_open_a_device_at_once() {
    let open = || kingpost_runtime::open("opencl").map(|_| ()).map_err(|e| e.to_string());
    let found: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert!(found.iter().all(|f| *f == found[0]), "{found:?}");
}
