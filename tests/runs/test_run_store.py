"""The folder of all runs: which runs are listed, ignored or refused; keys; and atomic files."""

import dataclasses
import gc
import json
import shutil
import weakref
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import RunError
from core.files import replacing, write_atomic
from core.runs import Manifest, Run, RunStore, execute, run_key
from core.runs.events import EventLog, RunState
from core.runs.lock import Lock

CONFIG = {"budget": "20%", "k": 3}
INPUTS = {"T_C": "aa", "D_C": "bb"}


def create(store: RunStore, kind: str = "select", key: str = "k") -> Run:
    return store.create(kind, {"ä": [1, None]}, {"T_C": "f"}, seed=7, versions={"numpy": "2"}, key=key)


def test_a_manifest_keeps_the_request(store: RunStore) -> None:
    run = create(store)
    expected = Manifest(
        run_id=run.id,
        kind="select",
        config={"ä": [1, None]},
        inputs={"T_C": "f"},
        seed=7,
        versions={"numpy": "2"},
        created=run.manifest.created,
        parent=None,
        key="k",
    )
    assert RunStore(store.home).get(run.id).manifest == run.manifest == expected
    with pytest.raises(dataclasses.FrozenInstanceError):
        run.manifest.kind = "other"  # type: ignore[misc]  # frozen


def test_runs_are_listed_newest_first_without_foreign_folders(store: RunStore) -> None:
    runs = [create(store) for _ in range(5)]
    assert len({run.id for run in runs}) == 5
    assert "-select-" in runs[0].id
    half = store.folder / runs[0].id.replace("select", "half")
    half.mkdir()
    (store.folder / ".removed-x").mkdir()
    (store.folder / "notes.txt").write_text("mine")
    shutil.copytree(runs[1].path, store.folder / "my copy")
    shutil.copytree(runs[1].path, store.folder / runs[1].id.replace("select", "copy"))
    torn = create(store, kind="torn")
    (torn.path / "manifest.json").write_text('{"run_id": ')
    assert RunStore(store.home).list() != []
    assert [run.id for run in RunStore(store.home).list()] == [run.id for run in reversed(runs)]
    for run_id in (half.name, torn.id):
        with pytest.raises(RunError, match=r"There is no run|is not in the list"):
            RunStore(store.home).get(run_id)


@pytest.mark.parametrize(
    "run_id",
    ["", ".", "..", "../runs", "/etc", "a/b", "20261120-131502-../..-3f2a", "20261120-131502-x-3f2a\n", "nope"],
)
def test_no_run_id_leads_out_of_the_folder(store: RunStore, run_id: str) -> None:
    (store.home / "manifest.json").write_bytes((create(store).path / "manifest.json").read_bytes())
    for call in (store.get, store.remove):
        with pytest.raises(RunError, match="There is no run"):
            call(run_id)


@pytest.mark.parametrize("kind", ["", "../x", "a b", "Select", "-x"])
def test_a_kind_must_make_a_folder_name(store: RunStore, kind: str) -> None:
    with pytest.raises(RunError, match="run kind"):
        create(store, kind=kind)
    assert list(store.folder.iterdir()) == []


def test_a_run_removed_by_another_process_leaves_disk_list_and_memory(store: RunStore) -> None:
    kept, gone = create(store), weakref.ref(removed := create(store))
    execute(removed, lambda context: {})
    RunStore(store.home).remove(name := removed.id)
    del removed
    assert store.list() == [kept]
    assert [path.name for path in store.folder.iterdir()] == [kept.id]
    with pytest.raises(RunError, match="There is no run"):
        store.remove(name)
    gc.collect()
    assert gone() is None


def test_a_finished_run_is_found_by_its_key_and_not_repeated(store: RunStore) -> None:
    first, second, _ = create(store), create(store), create(store, key="other")
    assert (store.finished("k", {}), store.unfinished("k", {})) == (None, second)
    with pytest.raises(RunError, match="has no result, because it is queued"):
        second.result()
    execute(second, lambda context: {"pair": (1, 2)})
    assert (store.finished("k", {}), store.unfinished("k", {})) == (second, first)
    assert execute(second, lambda context: {"pair": 1 / 0}) == second.result() == {"pair": [1, 2]}
    assert [event.kind for event in second.events()[0]] == ["started", "succeeded"]
    execute(first, lambda context: {"x": 1})
    assert (store.finished("k", {}), store.unfinished("k", {})) == (second, None)
    assert store.finished("none", {}) is None


def test_log_tail_returns_the_last_lines(store: RunStore) -> None:
    run = create(store)
    assert run.log_tail() == []
    run.log_file.write_bytes(b"\xff\n" + b"".join(b"%d\n" % i for i in range(50_000)))
    assert run.log_tail(2) == ["49998", "49999"]
    assert len(run.log_tail(10**6)) < 50_000


# --- keys ---


def test_a_run_with_another_default_of_an_older_version_is_not_reused(store: RunStore) -> None:
    """A key leaves out defaults, so a changed default alone does not change it. Options unknown to one are equal."""
    run = create(store)  # {"ä": [1, None]}
    execute(run, lambda context: {})
    assert store.finished("k", {"ä": [1, None], "new": 3}) == run
    assert store.finished("k", {"ä": [2, None]}) is None
    nested = store.create("select", {"stage": {"epochs": 2}}, {}, versions={}, key="n")
    assert store.unfinished("n", {"stage": {"epochs": 2, "new": True}}) == nested
    assert store.unfinished("n", {"stage": {"epochs": 3}}) is None


def test_a_key_changes_with_everything_a_result_depends_on() -> None:
    usual: dict[str, Any] = {"kind": "select", "config": CONFIG, "inputs": INPUTS, "seed": 0, "code_version": "1"}
    changes: list[dict[str, object]] = [
        {},
        {"kind": "map"},
        {"config": {"budget": "20%", "k": 4}},
        {"config": {}},
        {"inputs": {"T_C": "bb", "D_C": "aa"}},
        {"seed": 1},
        {"seed": None},
        {"code_version": "2"},
    ]
    assert len({run_key(**{**usual, **change}) for change in changes}) == len(changes)


words = st.text('aä\n"\U0001f600', max_size=3)
json_values = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words


@settings(deadline=None)
@given(config=st.dictionaries(words, json_values | st.lists(json_values, max_size=3), max_size=4))
def test_a_key_does_not_depend_on_json_or_order(config: dict[str, object]) -> None:
    again = json.loads(json.dumps(dict(reversed(config.items()))))
    key = run_key("x", config, {}, seed=0, code_version="1")
    assert key == run_key("x", again, {}, seed=0, code_version="1")
    assert len(key) == 64


# --- files ---


def test_a_file_is_replaced_completely_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_atomic(path, b"old")

    def fail() -> None:
        with replacing(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
    write_atomic(path, b"new")
    assert path.read_bytes() == b"new"


def test_an_attempt_that_begins_while_the_state_is_read_counts_as_running(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = create(store)
    with EventLog(run.events_file) as log:
        log.append("started", {"pid": 1, "created": 0.0})
    assert run.state().state == "interrupted"
    resumed, read_on = Lock(run.lock.path), run._read_on

    def begin_then_read() -> RunState:
        resumed.acquire()
        return read_on()

    monkeypatch.setattr(run, "_read_on", begin_then_read)
    assert run.state().state == "running"
    resumed.release()
