"""How notebooks show kernels and sources: highlighted, if Pygments is installed."""

from __future__ import annotations

import html
from typing import Any, Callable

#: The language of each target, as Pygments calls it.
LANGUAGES = {"c": "c", "opencl": "c", "cuda": "cuda"}


def highlighted(text: str, language: str) -> str:
    """Text as HTML, highlighted if Pygments is installed and knows the language."""
    try:
        from pygments import highlight
        from pygments.formatters import HtmlFormatter
        from pygments.lexers import get_lexer_by_name

        return highlight(text, _lexer(language, get_lexer_by_name), HtmlFormatter(noclasses=True))
    except ImportError:
        return f"<pre>{html.escape(text)}</pre>"


def _lexer(language: str, by_name: Callable[[str], Any]) -> Any:
    if language != "purlin":
        return by_name(language)
    from pygments.lexer import RegexLexer, words
    from pygments.token import Comment, Keyword, Name, Number, Operator, Text

    class PurlinLexer(RegexLexer):
        """The text format of kernels."""

        name = "Purlin"
        tokens = {
            "root": [
                (r"#.*$", Comment.Single),
                (words(("kernel", "param", "arg", "temp", "table", "assume", "rule"), suffix=r"\b"), Keyword.Declaration),
                (words(("for", "in", "out", "inout", "if", "let", "schedule"), suffix=r"\b"), Keyword),
                (words(("f64", "f32", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool", "f16", "bf16", "c64", "c128"), suffix=r"\b"), Keyword.Type),
                (r"\{[^}\n]*\}", Name.Decorator),
                (r"[A-Za-z_]\w*(?=:)", Name.Label),
                (r"[A-Za-z_]\w*", Name),
                (r"\d+(\.\d+)?(e[+-]?\d+)?", Number),
                (r"[-+*/=<>:]+", Operator),
                (r"\s+", Text.Whitespace),
                (r".", Text),
            ]
        }

    return PurlinLexer()

