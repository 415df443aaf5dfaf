//! The function of C code that runs the launches of a program, on threads that live through all of them.
//!
//! A launch is a function whose loop over groups is shared out among the threads that call it, which wait
//! for each other at its end. It is never inlined: compilers may move accesses through a `restrict` pointer
//! past a barrier of the function that has the pointer.

use super::{Printer, expr};
use crate::ast::HostStmt;
use std::fmt::Write;

impl Printer {
    /// The statements of a function that runs launches, into `out`.
    pub(super) fn region(&mut self, region: &[HostStmt]) {
        self.line("#pragma omp parallel");
        self.line("{");
        self.indent += 1;
        region.iter().for_each(|stmt| self.host_stmt(stmt));
        self.indent -= 1;
        self.line("}");
    }

    fn host_stmt(&mut self, stmt: &HostStmt) {
        match stmt {
            HostStmt::Launch { function, args, shared } => {
                if !shared {
                    self.line("#pragma omp single");
                }
                self.start();
                let _ = write!(self.out, "{function}(");
                for (k, arg) in args.iter().enumerate() {
                    if k > 0 {
                        self.out.push_str(", ");
                    }
                    self.expr(arg, 0);
                }
                self.out.push_str(");\n");
            }
            HostStmt::For { name, ty, lower, upper, body } => {
                self.start();
                let _ = write!(self.out, "for ({} {name} = ", self.dialect.ty(*ty));
                self.expr(lower, 0);
                let _ = write!(self.out, "; {name} < ");
                self.expr(upper, expr::COMPARISON + 1);
                let _ = writeln!(self.out, "; ++{name}) {{");
                self.indent += 1;
                body.iter().for_each(|stmt| self.host_stmt(stmt));
                self.indent -= 1;
                self.line("}");
            }
        }
    }
}
