//! NVRTC: CUDA source to PTX and machine code, with or without a GPU.
//!
//! The library is loaded here and not by `cudarc`, whose loader looks only on the system's search
//! path, takes the first version it meets, and panics where a symbol is missing. So it needs no feature.

use super::ptxas::{self, Resources};
use super::toolkit::{self, newest};
use crate::cache::{Cache, CacheKey};
use crate::device::{Backend, Optimisation, Origin};
use crate::error::{RuntimeError, Unavailable};
use kingpost_codegen::{Feature, Program};
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::sync::OnceLock;

/// What NVRTC is told besides the architecture, contraction and what is not to be optimised; the
/// last option makes ptxas report registers and spills in the log.
const OPTIONS: [&str; 2] = ["--std=c++17", "--ptxas-options=-v"];

/// Its default, written down because results depend on it.
const CONTRACTED: &str = "--fmad=true";

/// A program of NVRTC's.
type Handle = *mut c_void;
/// What its functions return.
type Code = c_int;
/// `NVRTC_SUCCESS`.
const DONE: Code = 0;

type Create = unsafe extern "C" fn(
    *mut Handle,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> Code;
type Compile = unsafe extern "C" fn(Handle, c_int, *const *const c_char) -> Code;
type Destroy = unsafe extern "C" fn(*mut Handle) -> Code;
type Size = unsafe extern "C" fn(Handle, *mut usize) -> Code;
type Bytes = unsafe extern "C" fn(Handle, *mut c_char) -> Code;
type Version = unsafe extern "C" fn(*mut c_int, *mut c_int) -> Code;
type Message = unsafe extern "C" fn(Code) -> *const c_char;

/// A loaded NVRTC.
struct Nvrtc {
    version: (i32, i32),
    create: Create,
    compile: Compile,
    destroy: Destroy,
    message: Message,
    log: (Size, Bytes),
    ptx: (Size, Bytes),
    cubin: (Size, Bytes),
    /// Never dropped: the value lives in a static.
    _libraries: Vec<Library>,
}

/// CUDA source compiled for one architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CudaObject {
    /// The architecture, such as `sm_90`.
    pub arch: String,
    /// The compiler, such as `NVRTC 13.0`.
    pub compiler: String,
    /// PTX text.
    pub ptx: String,
    /// Machine code, an ELF image.
    pub cubin: Vec<u8>,
    /// What NVRTC and the ptxas in it printed.
    pub log: String,
    /// Registers, spills and memory of each entry point, in the log's order; empty if the log has
    /// none.
    pub resources: Vec<Resources>,
    /// Whether NVRTC ran or the cache answered.
    pub origin: Origin,
}

/// Name and version of the NVRTC found here.
///
/// # Errors
/// There is none; the message says how to get it.
pub fn version() -> Result<String, Unavailable> {
    let nvrtc = load()?;
    Ok(format!("NVRTC {}.{}", nvrtc.version.0, nvrtc.version.1))
}

/// Compiles `source` for `arch` (`sm_90`) without a GPU; `name` stands for it in messages.
///
/// # Errors
/// No NVRTC, or a source or architecture it refuses (with its log).
pub fn compile_for(arch: &str, name: &str, source: &str, cache: &Cache) -> Result<CudaObject, RuntimeError> {
    compile(arch, name, source, &[CONTRACTED], cache)
}

/// Compiles a program for `arch` as it says of contraction, without a GPU.
///
/// # Errors
/// As [`compile_for`].
pub fn compile_program(
    arch: &str,
    program: &Program,
    optimisation: Optimisation,
    cache: &Cache,
) -> Result<CudaObject, RuntimeError> {
    let more = optimisation.options(Backend::Cuda).iter().copied();
    let more: Vec<&str> = program.contraction_option().into_iter().chain(more).collect();
    // what one architecture alone has is compiled for that one
    let own = program.plan.features.iter().any(|f| matches!(f, Feature::OneComputeCapability(_)));
    let arch = if own && !arch.ends_with('a') { format!("{arch}a") } else { arch.to_owned() };
    let mut object = compile(&arch, &program.entry, &program.source, &more, cache)?;
    for resources in object.resources.iter_mut().filter(|r| r.entry == program.entry) {
        resources.dynamic_shared_bytes = Some(program.plan.dynamic_local_bytes);
    }
    Ok(object)
}

fn compile(
    arch: &str,
    name: &str,
    source: &str,
    more: &[&str],
    cache: &Cache,
) -> Result<CudaObject, RuntimeError> {
    let compiler = version()?;
    let options = [&OPTIONS[..], more].concat();
    let key = CacheKey::of(&["cuda", &compiler, arch, &options.join(" "), source]);
    if let (Some(ptx), Some(cubin), Some(log)) =
        (cache.load(&key, "ptx"), cache.load(&key, "cubin"), cache.load(&key, "log"))
    {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let (ptx, log) = (text(ptx), text(log));
        return Ok(object(arch, compiler, ptx, cubin, log, Origin::Disk));
    }
    let (ptx, cubin, log) = load()?.run((arch, &options), name, source, &compiler)?;
    cache.store(&key, "ptx", ptx.as_bytes());
    cache.store(&key, "cubin", &cubin);
    cache.store(&key, "log", log.as_bytes());
    Ok(object(arch, compiler, ptx, cubin, log, Origin::Built))
}

fn object(
    arch: &str,
    compiler: String,
    ptx: String,
    cubin: Vec<u8>,
    log: String,
    origin: Origin,
) -> CudaObject {
    let resources = ptxas::parse(&log);
    CudaObject { arch: arch.into(), compiler, ptx, cubin, log, resources, origin }
}

fn load() -> Result<&'static Nvrtc, Unavailable> {
    static NVRTC: OnceLock<Result<Nvrtc, Unavailable>> = OnceLock::new();
    let names = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"];
    toolkit::load(&NVRTC, &names, Nvrtc::open, |searched| Unavailable::NoNvrtc { searched })
}

impl Nvrtc {
    /// The library at `path`, if it loads and has every function.
    fn open(path: &Path) -> Option<Self> {
        let mut libraries = Vec::new();
        // NVRTC opens its built-ins by bare name: outside the loader's path they must be there
        // first.
        let builtins = path.parent().filter(|d| !d.as_os_str().is_empty());
        if let Some(file) = builtins.and_then(|d| newest(d, "libnvrtc-builtins.so")) {
            // SAFETY: NVIDIA's library; its initialisers have no preconditions.
            libraries.extend(unsafe { Library::new(file) });
        }
        // SAFETY: as above.
        let library = unsafe { Library::new(path) }.ok()?;
        // SAFETY: the types are those of NVRTC's header, which has kept them since CUDA 11.1.
        let nvrtc = unsafe {
            let get = |name: &str| -> Option<(Size, Bytes)> {
                let size = *library.get::<Size>(format!("{name}Size").as_bytes()).ok()?;
                Some((size, *library.get::<Bytes>(name.as_bytes()).ok()?))
            };
            Self {
                version: version_of(*library.get::<Version>(b"nvrtcVersion").ok()?)?,
                create: *library.get::<Create>(b"nvrtcCreateProgram").ok()?,
                compile: *library.get::<Compile>(b"nvrtcCompileProgram").ok()?,
                destroy: *library.get::<Destroy>(b"nvrtcDestroyProgram").ok()?,
                message: *library.get::<Message>(b"nvrtcGetErrorString").ok()?,
                log: get("nvrtcGetProgramLog")?,
                ptx: get("nvrtcGetPTX")?,
                cubin: get("nvrtcGetCUBIN")?,
                _libraries: Vec::new(),
            }
        };
        libraries.push(library);
        Some(Self { _libraries: libraries, ..nvrtc })
    }

    fn run(
        &self,
        (arch, more): (&str, &[&str]),
        name: &str,
        source: &str,
        compiler: &str,
    ) -> Result<(String, Vec<u8>, String), RuntimeError> {
        let refused = |log| RuntimeError::compile(name, format!("{compiler} for {arch}"), source, log);
        let text = |s: &str| CString::new(s).map_err(|_| refused("a NUL byte in source or options".into()));
        let program = Compilation::new(self, &text(source)?, &text(&format!("{name}.cu"))?)
            .map_err(|e| refused(format!("nvrtcCreateProgram: {}", self.name(e))))?;
        let mut options = vec![text(&format!("--gpu-architecture={arch}"))?];
        for option in more {
            options.push(text(option)?);
        }
        let result = program.compile(&options);
        let log = program.text(self.log).unwrap_or_default();
        if result != DONE {
            return Err(refused(if log.trim().is_empty() { self.name(result) } else { log }));
        }
        let failed = |e| refused(format!("no code: {}", self.name(e)));
        let (ptx, cubin) =
            (program.text(self.ptx).map_err(failed)?, program.bytes(self.cubin).map_err(failed)?);
        Ok((ptx, cubin, log))
    }

    /// An error by its name.
    fn name(&self, code: Code) -> String {
        // SAFETY: the function takes any code and returns a text that stays.
        unsafe { CStr::from_ptr((self.message)(code)) }.to_string_lossy().into_owned()
    }
}

fn version_of(call: Version) -> Option<(i32, i32)> {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: two valid pointers, as the header asks.
    let result = unsafe { call(&mut major, &mut minor) };
    (result == DONE).then_some((major, minor))
}

/// An NVRTC program, destroyed when it goes.
struct Compilation<'a> {
    nvrtc: &'a Nvrtc,
    program: Handle,
}

impl<'a> Compilation<'a> {
    fn new(nvrtc: &'a Nvrtc, source: &CString, name: &CString) -> Result<Self, Code> {
        let mut program: Handle = std::ptr::null_mut();
        let none = std::ptr::null();
        // SAFETY: both strings end in NUL and are copied by the call; there are no headers.
        let result = unsafe { (nvrtc.create)(&mut program, source.as_ptr(), name.as_ptr(), 0, none, none) };
        if result == DONE { Ok(Self { nvrtc, program }) } else { Err(result) }
    }

    fn compile(&self, options: &[CString]) -> Code {
        let pointers: Vec<_> = options.iter().map(|o| o.as_ptr()).collect();
        // SAFETY: as many valid strings as told; the program is alive.
        unsafe { (self.nvrtc.compile)(self.program, pointers.len() as c_int, pointers.as_ptr()) }
    }

    /// What a size function and its partner give.
    fn bytes(&self, (size, get): (Size, Bytes)) -> Result<Vec<u8>, Code> {
        let mut n = 0usize;
        // SAFETY: a valid pointer and a live program.
        let result = unsafe { size(self.program, &mut n) };
        if result != DONE {
            return Err(result);
        }
        let mut out = vec![0u8; n];
        // SAFETY: `out` has the size the library asked for.
        let result = unsafe { get(self.program, out.as_mut_ptr().cast()) };
        if result == DONE { Ok(out) } else { Err(result) }
    }

    fn text(&self, call: (Size, Bytes)) -> Result<String, Code> {
        let bytes = self.bytes(call)?;
        Ok(String::from_utf8_lossy(bytes.strip_suffix(&[0]).unwrap_or(&bytes)).into_owned())
    }
}

impl Drop for Compilation<'_> {
    fn drop(&mut self) {
        // SAFETY: created in `new` and destroyed once.
        unsafe { (self.nvrtc.destroy)(&mut self.program) };
    }
}
