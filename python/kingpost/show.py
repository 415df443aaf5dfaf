"""How notebooks show kernels and sources: highlighted, if Pygments is installed."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Callable, Optional

if TYPE_CHECKING:
    from kingpost.schedule import Schedule

#: The language of each target, as Pygments calls it.
LANGUAGES = {"c": "c", "opencl": "c", "cuda": "cuda", "hip": "cuda"}


def highlighted(text: str, language: str) -> str:
    """Text as HTML, highlighted if Pygments is installed and knows the language."""
    try:
        from pygments import highlight
        from pygments.formatters import HtmlFormatter
        from pygments.lexers import get_lexer_by_name

        return highlight(text, _lexer(language, get_lexer_by_name), HtmlFormatter(noclasses=True))
    except ImportError:
        return f"<pre>{html.escape(text)}</pre>"


#: Steps of the longest schedule that a notebook shows unasked: those of large forms take seconds, and
#: more bytes than the rest of a notebook.
MOST_STEPS = 32


def explorer(schedule: Schedule) -> str:
    """The page of a schedule's steps in a frame that reaches neither the notebook nor a network."""
    if len(schedule.recipe.splitlines()) > MOST_STEPS:
        return ""
    return (
        f'<iframe sandbox="allow-scripts" srcdoc="{html.escape(schedule.page())}" loading="lazy" '
        f'title="Steps of {html.escape(schedule.start.name)}" style="width:100%;height:36em;border:1px solid #ccc"></iframe>'
    )


def residual_svg(residuals: Sequence[float], title: str) -> Optional[str]:
    """Norms of residuals by iteration, on a logarithmic axis; nothing if there are no two to draw."""
    shown = [(k, math.log10(r)) for k, r in enumerate(residuals) if r > 0.0 and math.isfinite(r)]
    if len(shown) < 2:
        return None
    width, height, left, top = 420, 200, 46, 24
    low, high = math.floor(min(y for _, y in shown)), math.ceil(max(y for _, y in shown))
    high = max(high, low + 1)
    across = lambda k: left + (width - left - 12) * k / max(len(residuals) - 1, 1)  # noqa: E731
    down = lambda y: top + (height - top - 28) * (high - y) / (high - low)  # noqa: E731
    line = " ".join(f"{across(k):.1f},{down(y):.1f}" for k, y in shown)
    step = max(1, (high - low) // 5)
    marks = "".join(
        f'<line x1="{left}" x2="{width - 12}" y1="{down(y):.1f}" y2="{down(y):.1f}" stroke="#ddd"/>'
        f'<text x="{left - 6}" y="{down(y) + 4:.1f}" text-anchor="end">1e{y}</text>'
        for y in range(low, high + 1, step)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        f'font-size="11"><text x="{left}" y="14">{html.escape(title)}</text>{marks}'
        f'<polyline points="{line}" fill="none" stroke="#1f77b4" stroke-width="1.5"/>'
        f'<text x="{width - 12}" y="{height - 8}" text-anchor="end">{len(residuals) - 1} iterations</text></svg>'
    )


def _lexer(language: str, by_name: Callable[[str], Any]) -> Any:
    if language != "kingpost":
        return by_name(language)
    from pygments.lexer import RegexLexer, words
    from pygments.token import Comment, Keyword, Name, Number, Operator, Text

    class KingpostLexer(RegexLexer):
        """The text format of kernels."""

        name = "Kingpost"
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

    return KingpostLexer()

