//! What long work is at, for whoever wants to tell a person.
//!
//! ```
//! use kingpost_runtime::{stage, with_stages};
//! use std::{cell::RefCell, rc::Rc};
//!
//! let told = Rc::new(RefCell::new(Vec::new()));
//! let of_work = Rc::clone(&told);
//! with_stages(move |what| of_work.borrow_mut().push(what.to_owned()), || stage("counting"));
//! stage("nobody is told of what comes later");
//! assert_eq!(*told.borrow(), ["counting"]);
//! ```

use std::cell::RefCell;
use std::rc::Rc;

type Tell = Rc<dyn Fn(&str)>;

thread_local! {
    static TELL: RefCell<Option<Tell>> = const { RefCell::new(None) };
}

/// Puts the former listener back, if the work panics too.
struct Restored(Option<Tell>);

impl Drop for Restored {
    fn drop(&mut self) {
        TELL.set(self.0.take());
    }
}

/// Runs `work`, of whose stages in this thread `tell` is told as they begin.
pub fn with_stages<T>(tell: impl Fn(&str) + 'static, work: impl FnOnce() -> T) -> T {
    let _restored = Restored(TELL.replace(Some(Rc::new(tell))));
    work()
}

/// Says that a stage begins.
pub fn stage(what: &str) {
    // the listener may have stages of its own
    let tell = TELL.with_borrow(Clone::clone);
    if let Some(tell) = tell {
        tell(what);
    }
}
