"""Queries of the page Corpora and its commands: list, preview, check, export and remove corpora, and assign roles."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.audit_log import noted
from core.config import Config, option
from core.corpora import preview as previews
from core.corpora import readers
from core.corpora import roles as stored_roles
from core.corpora.checks import Check
from core.corpora.columns import column_names, kept_names, kept_values, unique, value_names
from core.corpora.corpus import Corpus
from core.corpora.formats.folders import listing
from core.corpora.formats.ledger import NAMES, Format
from core.corpora.formats.source import DOCUMENTS
from core.corpora.hygiene import FLAGS
from core.corpora.writers import write_corpus
from core.errors import ConfigError, CorpusError, MissingCorpus, PathError
from core.importing.add import LONGEST_NAME
from core.importing.data_checks import Subject, called, checked, needed, subject
from core.importing.result import ROLES, read_audit, rejects_path
from core.models.hub import BUNDLED
from core.paths import allowed_path, allowed_roots, home
from core.projects.home import kept_per_home, library, store
from core.projects.removals import Usage, usage
from core.results import BoolArray, IntArray
from core.runs.run import holders
from core.samples.sets import SampleSet, sample_sets
from core.selection import DEFAULT_STRATEGY, STRATEGIES
from core.terms import plainly
from core.text.sentence import Sentence

MOST_VALUES = 500  # a column with more different values is not offered as a filter

P = ParamSpec("P")
T = TypeVar("T")
# Starts the process that reads files, so that the next call of `preview` is fast. Does not wait for the process.
warm_preview = previews.ready
# Formats whose text is always split into sentences.
CUT_ANYWAY = frozenset(format for format, _ in DOCUMENTS.values()) - {"xlsx"}
SELECTED = "N_S/N_D"
_AGAINST = {"N_T/N_D": ("task", "domain"), "N_L/N_T": ("train", "task"), "N_L/N_D": ("train", "domain")}


def listed() -> list[Corpus]:
    """Return all corpora: first the imported ones, then those that Winnow made, each group with the newest first."""
    return sorted(library().list(), key=lambda corpus: corpus.derived)


def lists_of_names() -> list[Corpus]:
    """Return the imported lists of names, newest first."""
    return [corpus for corpus in listed() if corpus.origin.get("format") == NAMES]


def find(reference: str) -> Corpus:
    """Return a corpus by name or fingerprint. Errors: CorpusError."""
    return library().find(reference)


def needed_by(reference: str) -> Usage:
    """Return the runs and corpora that need a corpus. Errors: CorpusError if it does not exist."""
    return usage(find(reference), library(), store())


def remove(reference: str, *, force: bool = False) -> None:
    """Delete a corpus, and leave its roles empty.

    force: delete the corpus even if an active run needs it; the run then fails. Errors: CorpusError if an active run
    needs the corpus, unless `force` is True.
    """
    # With this lock, no run can start between the check and the deletion.
    with store().critical():
        used = needed_by(reference)
        if used.active and not force:
            runs = ", ".join(run.id for run in used.active)
            raise CorpusError(
                f"{used.corpus.name}: an active run needs it ({runs}); wait until it ends, or cancel it first"
                f"{holders(used.active)}."
            )
        with noted("remove", corpora=[used.corpus.fingerprint]):
            library().remove(used.corpus.fingerprint)
    stored_roles.forget(home(), {used.corpus.fingerprint})


def rename(reference: str, name: str) -> Corpus:
    """Rename a corpus. Errors: CorpusError for a name that is empty, too long, or taken."""
    name = name.strip()
    if not 0 < len(name) <= LONGEST_NAME:
        raise CorpusError(f"name: has {len(name)} characters; give a name of 1 to {LONGEST_NAME} characters.")
    return library().rename(reference, name)


def preview(
    path: Path,
    *,
    encoding: str = "utf-8",
    part: str | None = None,
    text_column: str | None = None,
    tag_column: str = "",
    format: Format = "auto",
    entity_type: str = "",
) -> readers.Preview:
    """Return a preview of a file: format, text column, label scheme and first rows. A separate process reads the file.

    The options are those of `ReadOptions`; they override the detected values. Errors: those of `readers.sniff`;
    ResourceError if the process takes too long, needs too much memory, or dies.
    """
    options = readers.ReadOptions(
        encoding=encoding,
        part=part,
        text_column=text_column,
        tag_column=tag_column,
        format=format,
        entity_type=entity_type,
    )
    return previews.preview(path, options)


def import_listing(text: str) -> tuple[str, dict[str, Path]]:
    """Return a folder and {name: path} of its entries.

    text: path that the user typed: the folder, or a file in it. If the path cannot be used, return "" and the folders
    from which files may be imported.
    """
    roots = allowed_roots()
    if text:
        with suppress(PathError):
            path = allowed_path(text, roots)
            folder = path if path.is_dir() else path.parent
            inside = {path.name + "/" * path.is_dir(): path for path in listing(folder, roots)}
            above = any(folder.parent.is_relative_to(root.resolve()) for root in roots)
            return str(folder), {"..": folder.parent, **inside} if above else inside
    return "", {str(root): root for root in roots if root.is_dir()}


def _exporting(function: Callable[Concatenate[str, P], T]) -> Callable[Concatenate[str, P], T]:
    """Decorate a function whose first argument is the corpus to export: each call adds a line to the audit log."""

    @wraps(function)
    def written_down(reference: str, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with noted("export", corpora=[find(reference).fingerprint]):
            return function(reference, *args, **kwargs)

    return written_down


@_exporting
def export(reference: str, path: Path) -> int:
    """Write a corpus as .txt, .jsonl, .csv, .parquet or .conll, and return its number of sentences.

    Errors: CorpusError; ConfigError for another extension, and for labels in a .csv; PathError.
    """
    corpus = find(reference)
    sentences = (sentence for batch in corpus.batches() for sentence in batch)
    return write_corpus(sentences, path, labelled=corpus.labelled, kept=kept_names(corpus), names=value_names(corpus))


def open_sample(name: str) -> None:
    """Add the missing corpora of a sample set, and give all its corpora their roles."""
    given = add_sample(name)
    stored_roles.give(home(), {role: given.get(role) for role in ROLES})


def add_sample(name: str) -> Mapping[str, str]:
    """Add the missing corpora of a sample set. Return {role: fingerprint} of all its corpora."""
    given: dict[str, str] = {}
    with noted("import", corpora=given.values()):
        given |= _sealed(next(sample for sample in sample_sets() if sample.name == name))
    return given


def sample_replaces(name: str) -> bool:
    """Return True if opening a sample here would put its corpora in place of those that this project uses."""
    return any(library().find(mark).origin.get("sample") != name for mark in roles().values())


def _sealed(sample: SampleSet) -> dict[str, str]:
    """Read the corpora of a sample set and store those that are missing. Return {role: fingerprint} of all."""
    given = {}
    for role in ROLES:
        path: Path = getattr(sample, role)
        reported = readers.ReadReport()
        options = readers.ReadOptions(scheme="iob2" if path.suffix == ".conll" else "auto")
        sentences = readers.read(path, options, report=reported)
        sealed = library().seal(
            sentences,
            name=f"{sample.name}-{role}",
            origin={"file": path.name, "sample": sample.name},
            labelled=role not in ("task", "domain"),
            describe=reported.as_dict,
        )
        given[role] = sealed.fingerprint
    return given


def roles() -> dict[str, str]:
    """Return {role: fingerprint} of the corpora in use, without roles whose corpus was removed."""
    return stored_roles.read(home())


def judged_by() -> tuple[str, ...]:
    """Return the fingerprints of the dev and test sets. Their sentences must not be trained on."""
    given = roles()
    return tuple(given[role] for role in ("dev", "test") if role in given)


def set_role(role: str, reference: str | None) -> None:
    """Give a corpus a role. reference: None leaves the role empty."""
    stored_roles.give(home(), {role: None if reference is None else find(reference).fingerprint})


def set_roles(given: Mapping[str, str]) -> None:
    """Give corpora their roles as one change, which can be undone as a whole. given: {role: name or fingerprint}."""
    stored_roles.give(home(), {role: find(reference).fingerprint for role, reference in given.items()})


def former_roles() -> dict[str, str] | None:
    """Return {role: fingerprint} from before the last change of roles; None if nothing can be undone."""
    return stored_roles.before(home())


def undo_roles() -> None:
    """Undo the last change of roles."""
    stored_roles.undo(home())


def length_warnings(lengths: Mapping[str, IntArray], tolerance: float = 0.25) -> list[str]:
    """Return a warning for each role whose median sentence length differs from T_C's by more than `tolerance`.

    lengths: {role: number of tokens per sentence}.
    """
    medians = {role: float(np.median(values)) for role, values in lengths.items() if len(values)}
    target = medians.get("T_C")
    return [
        f"The median sentence of the {plainly(role)} has {median:.0f} tokens, {abs(median / target - 1):.0%}"
        f" {'more' if median > target else 'fewer'} than that of the task corpus ({target:.0f})."
        for role, median in medians.items()
        if target and role != "T_C" and abs(median / target - 1) > tolerance
    ]


def first_sentences(corpus: Corpus, n: int = 5) -> list[Sentence]:
    """Return `n` of the first 500 sentences of a corpus. Sentences with an entity come first."""
    first = next(corpus.batches(0, 500), [])
    return list(islice([*(s for s in first if s.entities), *(s for s in first if not s.entities)], n))


def describe(corpus: Corpus) -> dict[str, object]:
    """Return the description of a corpus as JSON values, for `corpus list` and `corpus show`."""
    return {
        "corpus": corpus.fingerprint,
        "name": corpus.name,
        "sentences": corpus.n_sentences,
        "tokens": corpus.n_tokens,
        "types": dict(corpus.types),
        "labelled": corpus.labelled,
        "cut": "own" if corpus.labelled else corpus.tokens,
        "derived": corpus.derived,
        **{key: corpus.origin[key] for key in ("repaired", "rejected") if key in corpus.origin},
    }


def leaks_flagged_twice(run_id: str) -> int:
    """Return the number of leaks that a finished `audit` run flagged as duplicates too. Errors: RunError."""
    mask = read_audit(store().get(run_id)).mask
    both = sum(1 << FLAGS.index(flag) for flag in ("exact_duplicate", "near_duplicate"))
    return int((((mask & (1 << FLAGS.index("leak"))) != 0) & ((mask & both) != 0)).sum())


def split_by(corpus: Corpus) -> dict[str, list[str]]:
    """Return the ways to split a corpus, as values of the option `by` of `split`.

    The result is {`document`, `sentence` or `column`: values of the column}; the list is empty except for `column`.
    """
    kinds: dict[str, list[str]] = {}
    if corpus.column("doc").null_count < len(corpus):
        kinds["document"] = []
    kinds["sentence"] = []
    if values := [value for value in corpus.column("group").unique().to_pylist() if value is not None]:
        kinds["column"] = sorted(values)
    return kinds


def length_counts(corpus: Corpus) -> IntArray:
    """Return how many sentences have 0, 1, 2, ... tokens, shape (longest + 1,)."""
    return _length_counts(corpus.fingerprint)


@kept_per_home(64)
def _length_counts(fingerprint: str) -> IntArray:
    return library().find(fingerprint).length_counts()


def filter_values(corpus: Corpus) -> Mapping[str, Mapping[str, int]]:
    """Return {column: {value: number of sentences}} for the columns to filter by. The most frequent value comes first.

    Columns are `doc`, `file`, `group` and the further columns of the imported files. A column is left out if it has
    more than MOST_VALUES values, or the same value in all sentences.
    """
    return _filter_values(corpus.fingerprint)


@kept_per_home(8)
def _filter_values(fingerprint: str) -> Mapping[str, Mapping[str, int]]:
    corpus, found = library().find(fingerprint), {}
    for name in column_names(corpus):
        counts = {str(row["values"]): int(row["counts"]) for row in kept_values(corpus, name).value_counts().to_pylist()
                  if row["values"] is not None}  # fmt: skip
        if counts and len(counts) <= MOST_VALUES and max(counts.values()) < len(corpus):
            found[name] = dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
    return found


def long_columns(corpus: Corpus) -> Sequence[str]:
    """Return the columns that `filter_values` leaves out because they have more than MOST_VALUES values."""
    return _long_columns(corpus.fingerprint)


@kept_per_home(8)
def _long_columns(fingerprint: str) -> Sequence[str]:
    corpus = library().find(fingerprint)
    return [name for name in column_names(corpus) if len(set(unique(corpus, name)) - {None}) > MOST_VALUES]


def matching(corpus: Corpus, where: Mapping[str, Sequence[str]]) -> BoolArray:
    """Return a mask `(n,)` of the sentences that have one of the given values in each column of `where`.

    Errors: ConfigError for an unknown column or value.
    """
    inside, known = np.ones(len(corpus), dtype=bool), column_names(corpus)
    for name, wanted in where.items():
        if name not in known:
            has = f"its columns are {', '.join(known)}" if known else "it has no column besides the text"
            raise ConfigError(f"where: {corpus.name} has no column {name!r}; {has}.")
        column = kept_values(corpus, name)
        chosen = pc.is_in(column, pa.array(wanted, pa.string())).to_numpy()
        if missing := sorted(set(wanted) - set(column.filter(pa.array(chosen)).to_pylist())):
            raise ConfigError(f"where: no sentence of {corpus.name} has {missing[0]!r} in {name}; check the spelling.")
        inside &= chosen
    return inside


def filtered(corpus: Corpus, where: Mapping[str, Sequence[str]]) -> Corpus:
    """Store the sentences that match `where` as a new corpus. If it exists already, return the existing corpus.

    Errors: ConfigError for an unknown column or value, or if no sentence or every sentence matches.
    """
    if before := filtered_before(corpus, where):
        return before
    rows = np.flatnonzero(matching(corpus, where))
    if not len(rows) or len(rows) == len(corpus):
        left = "no sentence has" if not len(rows) else "all sentences have"
        raise ConfigError(f"where: {left} these values in {corpus.name}; choose others.")
    words = ", ".join(value for wanted in where.values() for value in wanted)
    origin = {"from": corpus.fingerprint, "where": {name: list(wanted) for name, wanted in where.items()}}
    return library().subset(corpus, rows, name=f"{corpus.name}, {words}"[:LONGEST_NAME], origin=origin)


def filtered_before(corpus: Corpus, where: Mapping[str, Sequence[str]]) -> Corpus | None:
    """Return the corpus that `filtered` made from `corpus` and `where` earlier; None if there is none."""
    parts = (each for each in library().list() if each.parent == corpus.fingerprint)
    return next((each for each in parts if _sorted(each.origin.get("where")) == _sorted(where)), None)


def _sorted(where: object) -> dict[str, list[str]] | None:
    return {name: sorted(values) for name, values in where.items()} if isinstance(where, Mapping) else None


def rejects_file(run_id: str) -> Path | None:
    """Return the file with the rows that an `add` run rejected (JSON lines); None if no row was rejected."""
    file = rejects_path(store().get(run_id))
    return file if file.exists() else None


class CheckConfig(Config):
    """Options of the data check. If no corpus is given for a role, the project's corpus with this role is used."""

    task: str = option("", "Task corpus (T_C).", corpus=True)
    domain: str = option("", "Domain corpus (D_C).", corpus=True)
    train: str = option("", "Training set: labelled sentences that a tagger is trained on.", corpus=True)
    dev: str = option("", "Dev set: labelled sentences that decide when training stops.", corpus=True)
    test: str = option("", "Test set: labelled sentences for the final score.", corpus=True)
    budget: str = option("", "Budget that the domain corpus must be large enough for: 1000, 50000tokens or 20%.")
    strategy: str = option(DEFAULT_STRATEGY, "Strategy that the task corpus must be large enough for.")
    encoder: str = option(BUNDLED, "Encoder whose vocabulary is compared with the text.")


def check_project(options: Mapping[str, object] | None = None) -> Sequence[Check]:
    """Return the results of the data check of the project.

    options: fields of `CheckConfig`; a corpus given there replaces the project's corpus. Errors: ConfigError,
    CorpusError.
    """
    asked = CheckConfig.parse(dict(options or {}))
    if asked.strategy not in STRATEGIES:
        raise ConfigError(f"strategy: {asked.strategy!r} is unknown; choose among {', '.join(STRATEGIES)}.")
    given = {**roles(), **{role: mark for role in ROLES if (mark := getattr(asked, role))}}
    return checked(
        Subject(
            corpora={role: library().find(given[role]) for role in ROLES if role in given},
            budgets=(asked.budget,) if asked.budget else (),
            encoder=asked.encoder,
            strategies={asked.strategy: needed(asked.strategy, {})},
        )
    )


def check_run(kind: str, options: Mapping[str, object]) -> Sequence[Check]:
    """Return the results of the data check before a run of `kind` with these options. Missing corpora are skipped."""
    return checked(subject(kind, options, library()))


def check_corpus(reference: str) -> Sequence[Check]:
    """Return the results of the data check of one corpus, without comparing it with others; () if it was removed.

    Contradictory labels are not checked, because the report of an import counts them already.
    """
    try:
        corpus = library().find(reference)
    except MissingCorpus:
        return ()
    role = next((role for role, mark in roles().items() if mark == corpus.fingerprint), called(corpus))
    found = checked(Subject(corpora={role: corpus}, encoder=BUNDLED, labels=True))
    return [one for one in found if one.name != "contradictions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Ratio of the sizes of two corpora, in sentences.

    name: symbol of the ratio, for example "N_S/N_D". of, to: names of the two corpora; value = size of `of` / size of
    `to`.
    """

    name: str
    of: str
    to: str
    value: float


def density(corpus: Corpus) -> dict[str, float]:
    """Return the number of tokens per sentence. For a labelled corpus, add entities per sentence and per 100 tokens."""
    means = {"tokens_per_sentence": corpus.n_tokens / len(corpus)}
    if corpus.labelled:
        entities = sum(corpus.types.values())
        means |= {
            "entities_per_sentence": entities / len(corpus),
            "entities_per_100_tokens": 100 * entities / corpus.n_tokens,
        }
    return {name: round(value, 4) for name, value in means.items()}


def _selected(corpus: Corpus) -> bool:
    """Return True if a corpus made from another one is a selection.

    It is none if it is a part of a division, or if no run made it: sentences with values of a column, a corpus without
    its leaks, or a random sample.
    """
    return "run" in corpus.origin and "part" not in corpus.origin


def ratios(corpus: Corpus | None = None) -> Sequence[Ratio]:
    """Return the size ratios of the corpora in use, then the ratios of selected corpora to D_C, newest first.

    corpus: if given, return only the ratios of this corpus, including its ratio to the corpus that it was made from.
    """
    given = roles()
    named = {role: library().find(mark) for role, mark in given.items() if role in ROLES}
    pairs = [(name, named[one], named[other]) for name, (one, other) in _AGAINST.items() if {one, other} <= set(named)]
    domain = named.get("domain")
    selected = [each for each in library().list() if domain and each.parent == domain.fingerprint and _selected(each)]
    pairs += [(SELECTED, each, domain) for each in selected if domain and each.fingerprint not in given.values()]
    if corpus is not None:
        pairs = [pair for pair in pairs if corpus in pair[1:]]
        # The corpus from which `corpus` was made may have been removed.
        with suppress(CorpusError):
            if corpus.parent and not any(of == corpus and to.fingerprint == corpus.parent for _, of, to in pairs):
                pairs.append(("N/N of its source", corpus, library().find(corpus.parent)))
    return [Ratio(name=name, of=of.name, to=to.name, value=len(of) / len(to)) for name, of, to in pairs]
