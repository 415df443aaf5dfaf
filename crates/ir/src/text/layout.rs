//! Layouts apart from a kernel.

use super::cursor::Cursor;
use super::declaration::layout_attribute;
use super::error::{Fail, ParseErrors, fail_help};
use super::lex::{Kind, Token, tokens};
use super::line::lines;
use super::names::{Entity, may_name, plain};
use super::parse::Parser;
use super::print::write_layout;
use super::show::Names;
use crate::affine::{Affine, Atom};
use crate::ids::{Id, VarId};
use crate::kernel::{AddressSpace, Kernel, VarKind, Variable};
use crate::places::{Layout, Places};
use crate::types::ScalarType;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// What a layout is, for messages.
const HELP: &str = "write `strides(…)` with one stride for each axis, `order(…)` with the outermost axis first, `vector(axis)`, or `swizzle(axis ^= other)`";

/// A layout apart from a kernel: its strides name the parameters that they mention.
///
/// Its text, also in JSON, is that of declarations; none is dense and row-major.
///
/// ```
/// use kingpost_ir::text::NamedLayout;
///
/// let layout: NamedLayout = "strides(n+1, 1) vector(1)".parse()?;
/// assert_eq!(layout.to_string(), "strides(n + 1, 1) vector(1)");
/// assert_eq!("".parse::<NamedLayout>()?, NamedLayout::default());
/// # Ok::<(), kingpost_ir::text::ParseErrors>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NamedLayout {
    /// The parameters of the strides, in the order of the text.
    params: Vec<String>,
    /// The layout, whose variables count `params`.
    layout: Layout,
}

impl NamedLayout {
    /// Strides that are numbers, one for each axis.
    pub fn strides(strides: impl IntoIterator<Item = i64>) -> Self {
        Self::of_places(Places::Strides(strides.into_iter().map(Affine::constant).collect()))
    }

    /// Dense, with the axes in an order, the outermost first.
    pub fn order(order: impl IntoIterator<Item = u32>) -> Self {
        Self::of_places(Places::in_order(order.into_iter().collect()))
    }

    fn of_places(places: Places) -> Self {
        Self { params: Vec::new(), layout: Layout { places, ..Layout::default() } }
    }

    /// Dense and row-major, with an axis whose elements form one vector.
    pub fn vector(axis: u32) -> Self {
        Self { params: Vec::new(), layout: Layout { vector_axis: Some(axis), ..Layout::default() } }
    }

    /// Whether it is dense and row-major.
    pub fn is_default(&self) -> bool {
        self.layout == Layout::default()
    }

    /// The layout in a kernel, in which `find` looks up a parameter.
    ///
    /// # Errors
    /// The error of `find`.
    pub fn resolve<E>(&self, mut find: impl FnMut(&str) -> Result<VarId, E>) -> Result<Layout, E> {
        let vars = self.params.iter().map(|name| find(name)).collect::<Result<Vec<_>, E>>()?;
        let replace = |atom: &Atom| match atom {
            Atom::Var(id) => vars.get(id.index()).copied().map(Affine::var),
            Atom::Iname(_) | Atom::Floor(..) => None,
        };
        let places = match &self.layout.places {
            Places::Strides(strides) => {
                Places::Strides(strides.iter().map(|s| s.substitute(&replace)).collect())
            }
            dense @ (Places::RowMajor | Places::Order(_)) => dense.clone(),
        };
        Ok(Layout { places, ..self.layout.clone() })
    }
}

/// A kernel of these parameters alone, whose variables count them.
pub(super) fn declaring<'p>(params: impl IntoIterator<Item = &'p str>) -> Kernel {
    let mut kernel = Kernel::default();
    for name in params {
        let param = Variable::new(name, ScalarType::I32, VarKind::Param, [], AddressSpace::Private);
        kernel.vars.push(param);
    }
    kernel
}

/// The words inside brackets that may be names, each once.
fn parameters<'s>(tokens: &[Token<'s>]) -> Vec<(&'s str, super::lex::Span)> {
    let (mut depth, mut found): (usize, Vec<(&str, _)>) = (0, Vec::new());
    for token in tokens {
        match token.kind {
            Kind::Symbol("(") => depth += 1,
            Kind::Symbol(")") => depth = depth.saturating_sub(1),
            Kind::Name(name) if depth > 0 && may_name(name) => {
                if found.iter().all(|(known, _)| *known != name) {
                    found.push((name, token.span));
                }
            }
            Kind::Name(_)
            | Kind::Int(_)
            | Kind::Real(_)
            | Kind::Imaginary(_)
            | Kind::Hex(_)
            | Kind::Text(_)
            | Kind::Symbol(_)
            | Kind::Newline
            | Kind::Bad => {}
        }
    }
    found
}

impl FromStr for NamedLayout {
    type Err = ParseErrors;

    fn from_str(source: &str) -> Result<Self, ParseErrors> {
        let (tokens, mut errors) = tokens(source);
        let (lines, unbalanced) = lines(tokens, source);
        errors.extend(unbalanced);
        let all = |errors: Vec<Fail>| ParseErrors::new(errors.into_iter().map(|e| *e).collect(), source);
        if !errors.is_empty() {
            return Err(all(errors));
        }
        let line = match &lines[..] {
            [] => return Ok(Self::default()),
            [line] => line,
            [_, second, ..] => {
                let span = Cursor::new(&second.tokens).whole_span();
                return Err(all(vec![fail_help(span, "a layout is one line", HELP)]));
            }
        };
        let named = parameters(&line.tokens);
        let mut parser = Parser::of_parameters(declaring(named.iter().map(|(name, _)| plain(name))));
        let ids: Vec<VarId> = parser.kernel.vars.ids().collect();
        for ((name, span), id) in named.iter().zip(ids) {
            parser.names.declare(name, *span, Entity::Var(id)).map_err(|e| all(vec![e]))?;
        }
        let layout = read(&mut parser, &mut Cursor::new(&line.tokens)).map_err(|e| all(vec![e]))?;
        Ok(Self { params: named.into_iter().map(|(name, _)| plain(name).to_owned()).collect(), layout })
    }
}

fn read<'s>(parser: &mut Parser<'s>, c: &mut Cursor<'_, 's>) -> Result<Layout, Fail> {
    let mut layout = Layout::default();
    while !c.is_at_end() {
        let (word, span) = c.expect_word("`strides`, `order`, `vector` or `swizzle`")?;
        match layout_attribute(parser, c, word, &mut layout)? {
            Some(false) => {}
            Some(true) => return Err(fail_help(span, format!("`{word}` stands twice"), "remove one")),
            None => return Err(fail_help(span, format!("`{word}` is no part of a layout"), HELP)),
        }
    }
    Ok(layout)
}

impl fmt::Display for NamedLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kernel = declaring(self.params.iter().map(String::as_str));
        write_layout(f, &Names { kernel: &kernel, rule: None }, &self.layout)
    }
}

impl Serialize for NamedLayout {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for NamedLayout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|e: ParseErrors| {
            let first = e.errors().first();
            let why = first.map_or("", |e| e.message.as_str());
            let help = first.and_then(|e| e.help.as_deref()).unwrap_or(HELP);
            serde::de::Error::custom(format_args!("`{text}` is no layout: {why}; {help}"))
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // what a failed test does
mod tests {
    use super::*;

    #[test]
    fn the_text_is_kept() {
        let texts = [
            "",
            "strides(3, 1)",
            "strides(n + m, 1)",
            "strides(1, n)",
            "strides(2*n - m + 4, 1) vector(1)",
            "strides(4*floor_div(n, 4), n mod 4) vector(0)",
            "vector(2)",
            "order(2, 0, 1)",
            "order(1, 0) vector(0)",
            "swizzle(1 ^= 0)",
            "strides(40, 4, 1) vector(2) swizzle(1 ^= 0)",
        ];
        for text in texts {
            let layout: NamedLayout = text.parse().unwrap();
            assert_eq!(layout.to_string(), text);
            assert_eq!(layout.is_default(), text.is_empty());
            assert_eq!(layout.to_string().parse(), Ok(layout));
        }
        assert_eq!(
            "  vector( 0 )strides(1,n)".parse::<NamedLayout>().unwrap().to_string(),
            "strides(1, n) vector(0)"
        );
        assert_eq!("strides(16, 1)".parse(), Ok(NamedLayout::strides([16, 1])));
        assert_eq!("order(1, 0)".parse(), Ok(NamedLayout::order([1, 0])));
        assert_eq!("order(0, 1)".parse(), Ok(NamedLayout::default()));
        assert_eq!("vector(1)".parse(), Ok(NamedLayout::vector(1)));
    }

    #[test]
    fn other_texts_are_refused() {
        let refused = |text: &str| text.parse::<NamedLayout>().unwrap_err().to_string();
        let needed = HELP;
        assert_eq!(refused("row-major"), format!("1:1: `row` is no part of a layout; {needed}"));
        assert_eq!(refused("vector(0) local"), format!("1:11: `local` is no part of a layout; {needed}"));
        assert_eq!(refused("vector(0) vector(1)"), "1:11: `vector` stands twice; remove one");
        assert_eq!(refused("vector(0)\nvector(1)"), format!("2:1: a layout is one line; {needed}"));
        let both = "an array has strides or an order";
        assert_eq!(refused("strides(1) order(0)"), format!("1:12: {both}; remove one of them"));
        assert_eq!(refused("order(1, 0) strides(1)"), format!("1:13: {both}; remove one of them"));
        assert_eq!(refused("strides n"), "1:9: expected `(` and the strides, found `n`");
        assert_eq!(
            refused("strides(n*m)"),
            "1:9: this is not affine in loops and integer scalars: it multiplies two things that are not constant"
        );
        assert_eq!(
            refused("strides(1.5)"),
            "1:9: this is not affine in loops and integer scalars: it holds a real number"
        );
        assert_eq!(
            refused("strides(1"),
            "1:8: `(` is never closed; write `)` before the end of the statement"
        );
    }

    #[test]
    fn parameters_are_found_by_name() {
        let kernel = super::super::parse(
            "kernel k\nparam m: i32\nparam n: i32\narg x: f64[n, m] inout strides(n + m, 1)\nfor i in 0..n\n  s: x[i, 0] = 1.0\n",
        )
        .unwrap();
        let layout: NamedLayout = "strides(n + m, 1)".parse().unwrap();
        let find = |name: &str| kernel.var(name).ok_or_else(|| name.to_owned());
        assert_eq!(layout.resolve(find).unwrap(), kernel.vars[kernel.var("x").unwrap()].layout);
        let layout: NamedLayout = "strides(1, k)".parse().unwrap();
        assert_eq!(layout.resolve(find), Err("k".to_owned()));
    }
}
