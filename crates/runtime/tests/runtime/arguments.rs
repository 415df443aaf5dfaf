//! Every refusal of a launch or of a program that exceeds a limit.

use crate::programs::*;
use kingpost_codegen::{ArgKind, BufferAccess, Defined, Feature, HostExpr, Target};
use kingpost_ir::{ScalarType, TableData};
use kingpost_runtime::{Arg, Buffer, Device, RuntimeError, open};

fn host() -> Box<dyn Device> {
    open("c").unwrap()
}

/// Launches `axpy` with `args` and returns the refusal.
fn refusal(device: &dyn Device, args: &[(&str, Arg<'_>)]) -> RuntimeError {
    let exe = device.compile(&axpy(device.info().backend.target())).unwrap();
    device.launch(&exe, args).unwrap_err()
}

fn good<'a>(n: i64, x: &'a Buffer, y: &'a Buffer) -> Vec<(&'static str, Arg<'a>)> {
    vec![("n", Arg::Param(n)), ("a", Arg::F64(1.0)), ("x", Arg::Buffer(x)), ("y", Arg::Buffer(y))]
}

#[test]
fn missing_unknown_and_repeated_arguments() {
    let device = host();
    let (x, y) = (put(&*device, &[0.0; 8]), put(&*device, &[0.0; 8]));
    let mut args = good(8, &x, &y);
    args.remove(3);
    assert_eq!(
        refusal(&*device, &args).to_string(),
        "`axpy` needs argument `y` (a buffer of n elements of `f64`), which was not given; it takes `n`, `a`, `x`, `y`"
    );
    let mut args = good(8, &x, &y);
    args.push(("z", Arg::Param(1)));
    assert_eq!(
        refusal(&*device, &args).to_string(),
        "`axpy` takes no argument `z`; it takes `n`, `a`, `x`, `y`"
    );
    let mut args = good(8, &x, &y);
    args.push(("n", Arg::Param(1)));
    assert!(matches!(refusal(&*device, &args), RuntimeError::RepeatedArgument { .. }));
    let mut args = good(8, &x, &y);
    args.push(("shift", Arg::Buffer(&x)));
    assert!(matches!(refusal(&*device, &args), RuntimeError::UnknownArgument { .. }), "tables are not given");
}

#[test]
fn wrong_types_and_ranges() {
    let device = host();
    let (x, y) = (put(&*device, &[0.0; 8]), put(&*device, &[0.0; 8]));
    for (at, wrong) in [(0, Arg::I64(8)), (1, Arg::F32(1.0)), (1, Arg::Param(1)), (2, Arg::F64(0.0))] {
        let mut args = good(8, &x, &y);
        args[at].1 = wrong;
        let error = refusal(&*device, &args);
        assert!(matches!(error, RuntimeError::ArgumentType { .. }), "{error}");
    }
    let error = refusal(&*device, &good(1 << 31, &x, &y));
    assert!(matches!(error, RuntimeError::ParameterRange { value: 0x8000_0000, .. }), "{error}");
}

#[test]
fn lengths() {
    let device = host();
    let (x, y) = (put(&*device, &[0.0; 8]), put(&*device, &[0.0; 7]));
    let error = refusal(&*device, &good(8, &x, &y));
    assert_eq!(
        error.to_string(),
        "buffer `y` holds 56 bytes, `axpy` needs 64 (n elements of `f64`); allocate more"
    );
    let error = refusal(&*device, &good(-1, &x, &y));
    assert!(matches!(error, RuntimeError::BadExtent { value: -1, .. }), "{error}");

    let mut program = axpy(Target::C);
    program.plan.args[0].ty = ScalarType::I64;
    let exe = device.compile(&program).unwrap();
    let error = device.launch(&exe, &good(i64::MAX, &x, &y)).unwrap_err();
    assert!(matches!(error, RuntimeError::BadExtent { .. }), "{error}");
    let len = HostExpr::Mul(Box::new(param("n")), Box::new(param("n")));
    program.plan.args[2].kind = ArgKind::Buffer { len, access: BufferAccess::In };
    let exe = device.compile(&program).unwrap();
    let error = device.launch(&exe, &good(i64::MAX, &x, &y)).unwrap_err();
    assert!(matches!(error, RuntimeError::Expression { .. }), "{error}");
}

#[test]
fn parameters_follow_from_lengths() {
    let device = host();
    let (x, y, short) = (put(&*device, &[1.0; 8]), put(&*device, &[0.0; 8]), put(&*device, &[0.0; 7]));
    let exe = device.compile(&axpy(Target::C)).unwrap();
    device.launch(&exe, &good(8, &x, &y)[1..]).unwrap();
    assert_eq!(
        refusal(&*device, &good(8, &x, &short)[1..]).to_string(),
        "`axpy`: `y` has 7 elements, needed 8, as `n` = 8 by the length of `x`"
    );
    let mut program = axpy(Target::C);
    program.plan.defined = vec![Defined { name: "n".into(), value: HostExpr::Const(8) }];
    let exe = device.compile(&program).unwrap();
    device.launch(&exe, &good(8, &x, &y)[1..]).unwrap();
    assert_eq!(
        device.launch(&exe, &good(7, &x, &y)).unwrap_err().to_string(),
        "`axpy`: parameter `n` is given as 7, and it is computed as `8` = 8; leave it out"
    );
}

#[test]
fn aliases_are_refused_when_one_is_written() {
    let device = host();
    let x = put(&*device, &[0.0; 8]);
    assert_eq!(
        refusal(&*device, &good(8, &x, &x)).to_string(),
        "`axpy` got one buffer for `x` and `y` and writes `y`; pass distinct buffers"
    );
    let mut program = axpy(Target::C);
    program.plan.args[3] = buffer("y", BufferAccess::In);
    let exe = device.compile(&program).unwrap();
    device.launch(&exe, &good(8, &x, &x)).unwrap();
}

#[test]
fn preconditions_and_grids() {
    let device = host();
    let (x, y) = (device.allocate(8_000_008).unwrap(), device.allocate(8_000_008).unwrap());
    assert_eq!(
        refusal(&*device, &good(1_000_001, &x, &y)).to_string(),
        "`axpy` relies on `n <= 1000000`, which these parameters miss by 1; change them"
    );
    let mut program = axpy(Target::C);
    program.plan.grid[1] = HostExpr::Const(-3);
    let exe = device.compile(&program).unwrap();
    let error = device.launch(&exe, &good(8, &x, &y)).unwrap_err();
    assert!(matches!(error, RuntimeError::BadExtent { value: -3, .. }), "{error}");
    program.plan.grid[1] = HostExpr::Const(1);
    program.plan.grid[0] = HostExpr::Const(i64::MAX);
    let exe = device.compile(&program).unwrap();
    let error = device.launch(&exe, &good(8, &x, &y)).unwrap_err();
    assert!(matches!(error, RuntimeError::GridTooLarge { axis: 0, .. }), "{error}");
}

#[test]
fn things_of_another_device() {
    let (device, other) = (host(), host());
    let (x, y) = (put(&*device, &[0.0; 8]), put(&*other, &[0.0; 8]));
    assert!(matches!(refusal(&*device, &good(8, &x, &y)), RuntimeError::OtherDevice { .. }));
    assert!(matches!(device.fill(&y, 0), Err(RuntimeError::OtherDevice { .. })));
    let exe = other.compile(&axpy(Target::C)).unwrap();
    assert!(matches!(device.launch(&exe, &good(8, &x, &x)), Err(RuntimeError::OtherDevice { .. })));
}

#[test]
fn limits_are_checked_before_the_compiler_runs() {
    each_device(|device, target| {
        let mut program = axpy(target);
        program.source = "no compiler takes this".into();
        let limit = device.info().max_work_group_size;
        program.plan.block = [limit, 2, 1];
        let error = device.compile(&program).unwrap_err();
        assert!(error.to_string().contains(&format!("= {} work-items", 2 * limit)), "{error}");
        program.plan.block = [1, 1, 0];
        assert!(matches!(device.compile(&program), Err(RuntimeError::GroupAxis { axis: 2, size: 0, .. })));
        program.plan.block = [1, 1, 1];
        program.plan.local_bytes = device.info().local_mem_bytes + 1;
        let error = device.compile(&program).unwrap_err();
        assert!(matches!(error, RuntimeError::LocalMemory { .. }), "{error}");
        program.plan.local_bytes = 0;
        if let Some(limit) = device.info().private_mem_bytes {
            program.plan.private_bytes = limit + 1;
            let error = device.compile(&program).unwrap_err();
            assert!(matches!(error, RuntimeError::PrivateMemory { .. }), "{error}");
            program.plan.private_bytes = 0;
        }
        program.plan.args[4].kind = ArgKind::Table(TableData::real([0.1]));
        program.plan.args[4].ty = ScalarType::F32;
        assert!(matches!(device.compile(&program), Err(RuntimeError::TableType { .. })));
        program.plan.features = vec![Feature::Fp64, Feature::Int64Atomics];
        assert!(device.info().fp64 && device.info().int64_atomics);
        for other in [Target::C, Target::OpenCl, Target::Cuda] {
            if other != target {
                let error = device.compile(&axpy(other)).unwrap_err();
                assert!(matches!(error, RuntimeError::WrongTarget { .. }), "{error}");
            }
        }
    });
}

#[test]
fn a_grid_beyond_the_device_is_refused() {
    each_device(|device, target| {
        let limit = device.info().max_grid[1];
        let mut program = axpy(target);
        program.plan.grid[1] = HostExpr::Const(i64::try_from(limit).unwrap().saturating_add(1));
        // Where 64 bits are the limit, the block makes the number of work-items overflow.
        program.plan.block = [1, 2, 1];
        let exe = device.compile(&program).unwrap();
        let (x, y) = (put(device, &[0.0; 8]), put(device, &[0.0; 8]));
        let error = device.launch(&exe, &good(8, &x, &y)).unwrap_err();
        assert!(matches!(error, RuntimeError::GridTooLarge { axis: 1, .. }), "{target}: {error}");
    });
}
