//! The compiled-object cache, seen through a compiler that counts its runs.

use crate::programs::*;
use kingpost_codegen::Target;
use kingpost_runtime::{Arg, Cache, Device, Origin, open_host};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A compiler that notes each compilation in `dir/count`.
fn counting_compiler(dir: &Path) -> PathBuf {
    let path = dir.join("counting-cc");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *-shared*) echo run >> '{}';; esac\nexec cc \"$@\"\n",
        dir.join("count").display()
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn count(dir: &Path) -> usize {
    fs::read_to_string(dir.join("count")).unwrap_or_default().lines().count()
}

fn works(device: &dyn Device, expected: Origin) {
    let exe = device.compile(&axpy(Target::C)).unwrap();
    assert_eq!(exe.origin(), expected);
    let (x, y) = (put(device, &[2.0]), put(device, &[1.0]));
    let args = [("n", Arg::Param(1)), ("a", Arg::F64(3.0)), ("x", Arg::Buffer(&x)), ("y", Arg::Buffer(&y))];
    device.launch(&exe, &args).unwrap();
    assert_eq!(get(device, &y), [7.5]);
}

#[test]
fn a_second_compilation_is_found_in_memory_then_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let compiler = counting_compiler(dir.path());
    let open = || open_host(&compiler, Cache::at(dir.path().join("cache"))).unwrap();

    let device = open();
    let first = device.compile(&axpy(Target::C)).unwrap();
    assert_eq!((first.origin(), count(dir.path())), (Origin::Built, 1));
    works(&*device, Origin::Memory);
    drop(first); // a device keeps the latest ones
    works(&*device, Origin::Memory);
    works(&*open(), Origin::Disk);
    assert_eq!(count(dir.path()), 1);

    let mut other = axpy(Target::C);
    other.source.push_str("/* another source */\n");
    assert_eq!(device.compile(&other).unwrap().origin(), Origin::Built);
    assert_eq!(count(dir.path()), 2);
}

#[test]
fn a_damaged_entry_is_built_anew() {
    let dir = tempfile::tempdir().unwrap();
    let compiler = counting_compiler(dir.path());
    let cache = dir.path().join("cache");
    let open = || open_host(&compiler, Cache::at(&cache)).unwrap();
    works(&*open(), Origin::Built);
    let entry = fs::read_dir(&cache).unwrap().next().unwrap().unwrap().path();
    let bytes = fs::read(&entry).unwrap();
    for damaged in [bytes[..bytes.len() / 2].to_vec(), Vec::new(), vec![0; bytes.len()]] {
        fs::write(&entry, damaged).unwrap();
        works(&*open(), Origin::Built);
        works(&*open(), Origin::Disk);
    }
    assert_eq!(count(dir.path()), 4);
}

#[test]
fn without_a_writable_directory_every_device_compiles() {
    let dir = tempfile::tempdir().unwrap();
    let compiler = counting_compiler(dir.path());
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    for cache in [Cache::at(file.join("below")), Cache::disabled()] {
        works(&*open_host(&compiler, cache).unwrap(), Origin::Built);
    }
    assert_eq!(count(dir.path()), 2);
}

#[test]
fn a_stored_object_that_does_not_load_is_built_anew() {
    let dir = tempfile::tempdir().unwrap();
    let compiler = counting_compiler(dir.path());
    let cache = Cache::at(dir.path().join("cache"));
    let open = || open_host(&compiler, cache.clone()).unwrap();
    works(&*open(), Origin::Built);
    let entry = fs::read_dir(cache.dir().unwrap()).unwrap().next().unwrap().unwrap().path();
    // With the right digest (of the file's name, too), so that only the loader can refuse it.
    let name = entry.file_name().unwrap().to_str().unwrap();
    let content = b"no shared object";
    let digest = blake3::Hasher::new().update(name.as_bytes()).update(content).finalize();
    fs::write(&entry, [&content[..], digest.as_bytes()].concat()).unwrap();
    works(&*open(), Origin::Built);
    works(&*open(), Origin::Disk);
    assert_eq!(count(dir.path()), 2);
}
