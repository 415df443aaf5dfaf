//! What a compiler's log says of a generated source.

/// The first error of a log with the line of the source that it is about: `line 3, `x[0] =
/// y;`: undeclared …`. None if the log names no line that the source has.
///
/// The logs of GCC and clang (`kernel.c:3:5: error: …`), of OpenCL on top of clang
/// (`error: /tmp/….cl:3:5: …`) and of NVRTC (`axpy.cu(3): error: …`) are understood.
pub(crate) fn first_error(log: &str, source: &str) -> Option<String> {
    let line = log.lines().find(|line| line.contains("error") && place(line).is_some())?;
    let (number, message) = place(line)?;
    let text = source.lines().nth(number.checked_sub(1)?)?.trim();
    let message = message.trim_start_matches(|c: char| c == ':' || c.is_whitespace());
    let message = ["fatal error:", "error:"].iter().find_map(|p| message.strip_prefix(p)).unwrap_or(message);
    Some(format!("line {number}, `{text}`: {}", message.trim()))
}

/// The line number in a message, and what comes after the place.
fn place(line: &str) -> Option<(usize, &str)> {
    let at = line.match_indices([':', '(']).map(|(k, _)| k);
    at.filter_map(|k| {
        let rest = &line[k + 1..];
        let (number, rest) = number(rest)?;
        match line.as_bytes()[k] {
            b'(' => Some((number, rest.strip_prefix(')')?)),
            _ => {
                let rest = rest.strip_prefix(':')?;
                // a column, if there is one
                Some((number, self::number(rest).map_or(rest, |(_, rest)| rest)))
            }
        }
    })
    .next()
}

/// The number that a text starts with, and the rest.
fn number(text: &str) -> Option<(usize, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::first_error;

    #[test]
    fn logs_of_the_compilers_are_understood() {
        let source = "void f(void)\n{\n    x[0] = y;\n}\n";
        let cases = [
            (
                "kernel.c: In function \u{2018}f\u{2019}:\nkernel.c:3:12: error: \u{2018}y\u{2019} undeclared",
                "line 3, `x[0] = y;`: \u{2018}y\u{2019} undeclared",
            ),
            ("kernel.c:3:12: fatal error: no", "line 3, `x[0] = y;`: no"),
            (
                "1 warning\nerror: /var/cache/pocl/a:b.cl:3:12: use of undeclared identifier 'y'\n",
                "line 3, `x[0] = y;`: use of undeclared identifier 'y'",
            ),
            ("<source>:1:1: warning: what?\n<source>:3:12: error: none: 7", "line 3, `x[0] = y;`: none: 7"),
            (
                "f.cu(3): error: identifier \"y\" is undefined\n",
                "line 3, `x[0] = y;`: identifier \"y\" is undefined",
            ),
        ];
        for (log, message) in cases {
            assert_eq!(first_error(log, source).as_deref(), Some(message), "{log}");
        }
        for log in ["", "error: no memory", "kernel.c:9:1: error: beyond", "kernel.c:0:1: error: none"] {
            assert_eq!(first_error(log, source), None, "{log}");
        }
    }
}
