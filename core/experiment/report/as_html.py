"""A report as one page of HTML: no scripts, nothing fetched, all text escaped."""

from collections.abc import Sequence
from html import escape

from core.experiment.report.parts import (
    Code,
    Document,
    Dot,
    Drawing,
    Facts,
    Heading,
    Items,
    Label,
    Part,
    Picture,
    Quote,
    Shape,
    Stroke,
    Table,
)

_STYLE = """
body { font: 16px/1.55 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem;
  color: light-dark(#1d1f24, #e6e6e6); background: light-dark(#fff, #15171c); color-scheme: light dark; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin-top: 1.4rem; }
.answer { font-size: 1.3rem; line-height: 1.35; margin: .3rem 0 .6rem; }
.about { font-size: .9em; margin-top: .2rem; } p { overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: .6rem 0; }
dt { font-weight: 600; } dd { margin: 0; overflow-wrap: anywhere; }
.leading { border-left: 5px solid #0072B2; padding-left: 1rem; }
blockquote { margin: .8rem 0 .2rem; font-style: italic; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-size: .92em; } div { overflow-x: auto; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #8888; vertical-align: top; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
code { overflow-wrap: anywhere; font-size: .85em; } svg { width: 100%; height: auto; } svg text { fill: currentColor; }
.second { border-top: 1px solid #8888; margin-top: 2.5rem; }
h2 { break-after: avoid; } svg, tr, dl { break-inside: avoid; }
@page { margin: 16mm; }
@media print { body { margin: 0; max-width: none; font-size: 10.5px; line-height: 1.35; padding: 0; }
  h2 { margin: .7rem 0 .2rem; font-size: 13px; }
  .answer { font-size: 15px; } p, dl, ul, blockquote { margin: .25rem 0; } svg { width: 80%; }
  th, td { padding: .1rem .5rem; } code { font-size: 9px; }
  .second { break-before: page; border-top: 0; margin-top: 0; } }
"""


def html(document: Document) -> str:
    """Return the report as one HTML document."""
    about = "".join(f'<p class="about">{escape(line)}</p>' for line in (document.cover.line, document.about) if line)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(document.title)}</title>'
        '<meta name="viewport" content="width=device-width"><meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<style>{_STYLE}</style></head><body><h1>{escape(document.title)}</h1>"
        f'<p class="answer">{escape(document.answer)}</p>{about}'
        f"{''.join(map(_part, document.first))}"
        f'<section class="second">{"".join(map(_part, document.second))}</section></body></html>\n'
    )


def _part(part: Part) -> str:
    if isinstance(part, Picture):
        return _svg(part.drawing, part.words)
    if isinstance(part, Table):
        return _table(part)
    if isinstance(part, Facts | Items):
        return _named(part)
    text = escape(part.text)
    if isinstance(part, Heading):
        return f"<h2>{text}</h2>"
    if isinstance(part, Quote):
        return f"<blockquote>{text}</blockquote>"
    if isinstance(part, Code):
        text = f"<code>{text}</code>"
    elif part.strong:
        text = f"<strong>{text}</strong>"
    return f"<p>{text}</p>"


def _named(part: Facts | Items) -> str:
    pairs = [(escape(name), escape(words)) for name, words in part.rows]
    if isinstance(part, Items):
        return f"<ul>{''.join(f'<li><strong>{name}</strong>: {words}</li>' for name, words in pairs)}</ul>"
    rows = "".join(f"<dt>{name}</dt><dd>{words}</dd>" for name, words in pairs)
    return f'<dl class="leading">{rows}</dl>' if part.leading else f"<dl>{rows}</dl>"


def _table(part: Table) -> str:
    def cells(tag: str, values: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{' class=n' if i in part.numbers else ''}>{escape(value)}</{tag}>" for i, value in enumerate(values)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in part.rows)
    return f"<div><table><thead><tr>{cells('th', part.heads)}</tr></thead><tbody>{body}</tbody></table></div>"


def _svg(drawing: Drawing, words: str) -> str:
    size = f'viewBox="0 0 {drawing.width:g} {drawing.height:g}"'
    return f'<svg role="img" aria-label="{escape(words)}" {size}>{"".join(map(_shape, drawing.shapes))}</svg>'


def _shape(shape: Shape) -> str:
    match shape:
        case Stroke():
            ends = f'x1="{shape.x1:.1f}" x2="{shape.x2:.1f}" y1="{shape.y1:.1f}" y2="{shape.y2:.1f}"'
            dashes = ' stroke-dasharray="4"' if shape.dashed else ""
            return f'<line {ends} stroke="{shape.colour}" stroke-width="{shape.width:g}"{dashes}/>'
        case Dot():
            return f'<circle cx="{shape.x:.1f}" cy="{shape.y:.1f}" r="{shape.radius:g}" fill="{shape.colour}"/>'
        case Label():
            weight = ' font-weight="bold"' if shape.bold else ""
            place = f'x="{shape.x:.1f}" y="{shape.y:.1f}" text-anchor="{shape.anchor}"'
            return f'<text {place} font-size="{shape.size:g}"{weight}>{escape(shape.text)}</text>'
