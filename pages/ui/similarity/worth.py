"""Show how well each similarity measure predicts F1 (Dai et al. 2019, 7.2).

Each measure has two numbers: its correlation with F1, and the points lost by taking the source that it ranks first.
"""

from collections.abc import Mapping, Sequence

import streamlit as st

from core.projects import runs
from core.similarity import view as similarity
from core.similarity.predictive import Advised, Choice, Coefficient, Rule
from core.similarity.worth import Effect, Judgement, judge_table
from pages.ui.similarity.results import agreement_text, named, split_table
from pages.ui.widgets import plain, submitted, table

TEXT = "similarity.pasted"
ASKED = "similarity.judged"


def worth(run_id: str | None) -> None:
    """Show how well the measures predict F1 in the user's experiments, if there are any, and in a pasted table.

    run_id: the `similarity` run whose measures are used.
    """
    own = similarity.judge_own(run_id) if run_id and runs.state(run_id).state == "succeeded" else None
    if own:
        st.subheader("Your own experiments", anchor=False)
        _judged(own)
    st.subheader("A table of measures and scores", anchor=False)
    st.markdown(
        "Paste a table separated by commas, semicolons or tabs. Columns: `target`, `source`, the measures (`ppl`, "
        "`wvv`, `tvc`, `tvcc`, or `name:low` for another measure whose low values mean closer, else `name:high`) "
        "and the score in percent (`F1`: `70.08`, or `70.08 (± 0.43)`). The source `None` is the score without a "
        "source. A column `runs` gives the number of runs of each mean."
    )
    st.button(
        "Insert Table 3 of Dai et al. 2019",
        key="similarity.example",
        icon=":material/content_paste:",
        on_click=_example,
    )
    with st.form("similarity.paste"):
        text = st.text_area("The table", key=TEXT, height=220)
        if submitted("Correlate", "similarity.judge", type="primary", icon=":material/query_stats:"):
            # Keep the text in the session, because a form's button is True in one rerun only.
            st.session_state[ASKED] = text
    if asked := st.session_state.get(ASKED):
        _judged(judge_table(asked))


def _example() -> None:
    st.session_state[TEXT] = st.session_state[ASKED] = similarity.EXAMPLE.read_text(encoding="utf-8")


def _judged(judgement: Judgement) -> None:
    if not judgement.effects:
        st.info("The table has no column of scores (F1), so only the measures can be compared with each other.")
    for effect in judgement.effects:
        st.markdown(f"#### {plain(_score_named(effect.name))}")
        (st.success if effect.shown else st.info)(plain(effect.sentence), icon=":material/insights:")
        _regrets(effect)
        with st.expander("Correlation of each measure with the score", icon=":material/query_stats:"):
            _correlations(effect, judgement.conventions)
    if judgement.rule:
        _rule(judgement.rule)
    st.markdown("#### Do the measures agree?")
    agreement = judgement.agreement
    st.markdown(agreement_text(agreement) if agreement.items else "There is nothing to compare.")
    if agreement.splits:
        with st.expander(f"The {len(agreement.splits)} pairs that split", icon=":material/call_split:"):
            split_table(agreement.splits, "Pairs of sources that the measures order differently")


def _score_named(name: str) -> str:
    """Return the heading for a column of scores: "Score (F1), LM" for a column with the name "LM F1"."""
    of = name.removesuffix("F1").strip()
    return name if of == name else f"Score (F1), {of}" if of else "Score (F1)"


def _rule(rule: Rule) -> None:
    """Show how often a rule is right: take a language model of a close source, and word vectors of a distant one.

    Source: Dai et al. 2019, 7.2.
    """
    st.markdown("#### Word vectors or language model?")
    shown = rule.p is not None and rule.p <= 0.05
    (st.success if shown else st.info)(plain(rule.sentence), icon=":material/alt_route:")
    rows = [_advised(row) for row in rule.rows]
    columns = {
        "target": "Target",
        "source": "Source",
        "place": "Closeness, 1 the closest",
        "gap": "Points, language model minus word vectors",
        "better": "Better",
        "advice": "The rule says",
        "right": "Right",
    }
    table(rows, columns, "Word vectors or language model of each source, and the rule's advice")
    st.caption(
        "Sources are ordered by mean rank over the measures. The rule advises the language model for the closer half "
        "and word vectors for the farther half. In brackets: 95% interval by Welch over the runs, on this test set. "
        "The chance level comes from shuffling the advice over a target's sources."
    )


def _advised(row: Advised) -> dict[str, str]:
    low, high = row.interval or (0.0, 0.0)
    better = row.better or "equal"
    return {
        "target": row.target,
        "source": row.source,
        "place": f"{row.place:g} of {row.of}",
        "gap": f"{row.f1[0] - row.f1[1]:+z.2f} "
        + (f"[{low:+z.2f}, {high:+z.2f}]" if row.interval else "[no interval]"),
        "better": better if row.clear else f"{better}, not clearly",
        "advice": row.advice or "none: in the middle",
        "right": "" if not (row.advice and row.better) else "yes" if row.advice == row.better else "no",
    }


def _correlations(effect: Effect, conventions: Mapping[str, str]) -> None:
    rows = [
        {
            "measure": named(measure),
            **{name: _r(row[name]) for name in conventions},
            "p": _p(effect, measure),
        }
        for measure, row in effect.correlations.items()
    ]
    columns = {"measure": "Measure", **{name: name.capitalize() for name in conventions}, "p": "p"}
    table(rows, columns, f"Correlation of the measures with the change of the score, {effect.name}")
    meanings = "; ".join(f"{name}: {text}" for name, text in conventions.items())
    st.caption(
        plain(
            "Pearson's r, with its 95% interval over targets in brackets if there are at least four targets. "
            f"{meanings}. For p, each target's sources are shuffled and r over runs is computed again; p is the "
            "share of shuffles in which r is at least as high as without shuffling. For the best of several measures, "
            "see p in the sentence above."
        )
    )


def _p(effect: Effect, measure: str) -> str:
    chance = effect.chance.by_measure.get(measure) if effect.chance else None
    return "–" if chance is None else f"{chance:.2g}"


def _r(r: Coefficient) -> str:
    if r.value is None:
        return "too few"
    return f"{r.value:z.3f}" + (f" [{r.interval[0]:z.2f}, {r.interval[1]:z.2f}]" if r.interval else " [no interval]")


def _regrets(effect: Effect) -> None:
    rows = [
        {
            "measure": named(regret.measure),
            "hits": f"{regret.hits} of {regret.targets}",
            "mean": "–" if regret.mean is None else f"{regret.mean:.3f}",
            "random": "–" if regret.random is None else f"{regret.random:.3f}",
            "pairs": f"{regret.concordant} of {regret.pairs}",
            "misses": _misses(regret.choices),
        }
        for regret in effect.regrets
    ]
    columns = {
        "measure": "Measure",
        "hits": "Best source found",
        "mean": "Points lost on average",
        "random": "Lost at random",
        "pairs": "Pairs in the order of the score",
        "misses": "Where it missed",
    }
    table(rows, columns, f"Points lost by following each measure, {effect.name}")


def _misses(choices: Sequence[Choice]) -> str:
    misses = []
    for choice in choices:
        if choice.lost > 0:
            chance = "" if choice.p is None else f", p = {choice.p:.2g}"
            text = f"{choice.target}: {choice.taken} for {choice.best} (−{choice.lost:.2f}{chance})"
            misses.append(text)
    return "; ".join(misses) or "nowhere"
