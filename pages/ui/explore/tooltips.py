"""Tooltips of a map's points: sent after the map, whose drawing ten times its own size in text would hold up."""

import json
from collections.abc import Sequence

import streamlit as st

from core.results import IntArray
from pages.ui.frame import ASSETS

_tooltips = st.components.v2.component("winnow_tooltips", js=(ASSETS / "tooltips.js").read_text(encoding="utf-8"))


def packed(chart: str, points: IntArray, lines: Sequence[str]) -> bytes:
    """Bytes that `tooltips` sends. chart: key of what holds it. points: their `customdata`, a line of `lines` each."""
    return json.dumps({"chart": chart, "points": points.tolist(), "lines": lines}, ensure_ascii=False).encode()


def tooltips(key: str, data: bytes) -> None:
    """Let a chart's points tell what they are. data: from `packed`, kept by who calls."""
    _tooltips(key=key, data=data, height=1)
