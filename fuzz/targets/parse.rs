//! No text makes the parser panic; what it accepts prints and parses to the same kernel; what it
//! refuses has errors that can be shown.

#![no_main]

use libfuzzer_sys::fuzz_target;
use kingpost_ir::text::{PrintOptions, TableStyle, parse, print, print_with};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match parse(text) {
        Ok(kernel) => {
            assert_eq!(parse(&print(&kernel)).as_ref(), Ok(&kernel));
            let abridged = print_with(&kernel, PrintOptions { tables: TableStyle::Abridged });
            assert!(!abridged.is_empty());
        }
        Err(errors) => {
            assert!(errors.errors().iter().all(|e| text.get(e.span.clone()).is_some()));
            assert!(!errors.render(text).is_empty());
        }
    }
});
