//! Intel's runtime for processors, the package `intel-opencl-rt` of Python.
//!
//! Its makers' file for the loader names a folder that only their own installer makes. So the library is asked as a
//! loader asks it; its objects hold their functions, which every loader calls through them.

use crate::error::Unavailable;
use crate::wheels;
use libloading::Library;
use opencl3::platform::Platform;
use opencl3::types::{cl_int, cl_platform_id, cl_uint};
use std::ffi::{CStr, c_char, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The library with the platform.
const DRIVER: &str = "libintelocl.so";

/// The loader's name, which the package has a file of, too.
const LOADER: &str = "libOpenCL.so.1";

/// Gives the address of a function of an extension.
type Extension = unsafe extern "C" fn(*const c_char) -> *mut c_void;

/// Gives platforms, as `clGetPlatformIDs` does.
type Platforms = unsafe extern "C" fn(cl_uint, *mut cl_platform_id, *mut cl_uint) -> cl_int;

/// The platform of the first environment that has the package. None if the loader's platforms were chosen by its
/// variables: oclgrind is to be the only device where it checks.
///
/// # Errors
/// The package is there and does not load.
pub(crate) fn platform() -> Result<Option<Platform>, Unavailable> {
    static LOADED: OnceLock<(Library, Option<Library>)> = OnceLock::new();
    if std::env::var_os("OCL_ICD_VENDORS").is_some() {
        return Ok(None);
    }
    let mut folders = wheels::environments().into_iter().map(|(_, root)| root.join("lib"));
    let Some(folder) = folders.find(|f| f.join(DRIVER).is_file()) else { return Ok(None) };
    let path = folder.join(DRIVER);
    let broken = |reason| Unavailable::BrokenOpenClPackage { path: path.clone(), reason };
    if LOADED.get().is_none() {
        let loaded = load(&folder, &path).map_err(|e| broken(e.to_string()))?;
        LOADED.get_or_init(|| loaded);
    }
    let Some((driver, _)) = LOADED.get() else { return Ok(None) };
    ask(driver).map(Some).map_err(broken)
}

/// The driver, and the loader where the system has none.
fn load(folder: &Path, driver: &PathBuf) -> Result<(Library, Option<Library>), libloading::Error> {
    // SAFETY: these libraries' initialisers have no preconditions.
    unsafe {
        // first: the package's loader needs libraries that only the driver finds
        let driver = Library::new(driver)?;
        let loader = Library::new(LOADER).or_else(|_| Library::new(folder.join(LOADER)));
        Ok((driver, loader.ok()))
    }
}

fn ask(driver: &Library) -> Result<Platform, String> {
    const NAME: &CStr = c"clIcdGetPlatformIDsKHR";
    // SAFETY: OpenCL's own function, whose type is that of the standard.
    let extension = unsafe { driver.get::<Extension>(b"clGetExtensionFunctionAddress") };
    let extension = extension.map_err(|e| e.to_string())?;
    // SAFETY: a string that ends with NUL.
    let address = unsafe { extension(NAME.as_ptr()) };
    if address.is_null() {
        return Err(format!("it has no `{}`", NAME.to_string_lossy()));
    }
    // SAFETY: the function of that name has this type (extension `cl_khr_icd`), and the library stays loaded.
    let platforms = unsafe { std::mem::transmute::<*mut c_void, Platforms>(address) };
    let (mut id, mut found): (cl_platform_id, cl_uint) = (std::ptr::null_mut(), 0);
    // SAFETY: there is place for the one platform that is asked for.
    match unsafe { platforms(1, &raw mut id, &raw mut found) } {
        0 if found > 0 => Ok(Platform::new(id)),
        code => Err(format!("`{}` answers {code}", NAME.to_string_lossy())),
    }
}
