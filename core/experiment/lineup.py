"""Which arms an experiment has: those that were asked for, and those that no verdict can do without; their order."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from core.bias.rebuild import RebuildOptions
from core.errors import ConfigError
from core.experiment.arms import ALL, CONTROL, ENCODER, NONE, RANDOM, SHARE, SIZE, STATES, Arm, Cell, find
from core.tagging.network import check_own
from core.training.settings import TaggerSettings

_LACKS = {
    "task": ("reads the task corpus", "a task corpus"),
    "domain": ("chooses from the domain corpus", "a domain corpus"),
    "sources": ("begins from a source", "sources"),
    "words": ("begins from a source", "sources or imported_vectors"),
    "assisting": ("borrows sentences", "an assisting corpus"),
}


def complete(names: Sequence[str], given: Mapping[str, object], network: str, size: int = SIZE) -> tuple[str, ...]:
    """`names` in one spelling, with the arms that no verdict can do without: `none`, and what a choice must beat.

    given: the experiment's corpora by option, "" or () where there are none. size: sentences of a share's set.
    Errors: ConfigError for an unknown arm, for one that lacks what it needs, and for one that `network` cannot tell
    from `none`.
    """
    arms = {arm.name: sized(arm, size) for arm in map(find, names)}
    given = {**given, "words": given.get("sources") or given.get("imported_vectors")}
    for arm in arms.values():
        if lacking := [name for name in arm.needs if not given.get(name)]:
            does, what = _LACKS[lacking[0]]
            raise ConfigError(f"arms: {arm.name} {does}; give {what}, or leave that variant out.")
        if network not in arm.networks:
            raise ConfigError(
                f"arms: {arm.name} is for the network {' or '.join(arm.networks)}, and all variants share one, which "
                f"is {network}; say another as finetune's network, or leave that variant out."
            )
    needed = [NONE]
    needed += [RANDOM] if any(arm.chooses for arm in arms.values()) else []
    needed += [CONTROL] if given.get("domain") and "tapt" in arms else []
    needed += [STATES] if any(arm.states for arm in arms.values()) else []
    needed += [ALL] if any(arm.assisting for arm in arms.values()) else []
    needed += [name for arm in arms.values() if (name := arm.own_control) and network in find(name).networks]
    needed += [arm.base for arm in arms.values()]
    return (*(name for name in dict.fromkeys(needed) if name not in arms), *arms)


def check_taggers(names: Sequence[str], settings: TaggerSettings) -> None:
    """Say now, not after hours, what an arm's network has not. settings: of all. Errors: ConfigError."""
    for name in names:
        check_own(settings.model_copy(update=find(name).tagger))


def cells(
    names: Sequence[str],
    budgets: Sequence[str],
    encoders: Sequence[str] = (),
    *,
    size: int = SIZE,
    caps: Sequence[int] = (),
    imported: Sequence[str] = (),
) -> list[Cell]:
    """Every line of the leaderboard, in the order in which the arms are run. encoders: beside the experiment's own.
    size: as `complete` has it. caps: tokens read of a source; several are a line each, one or none need no saying.
    imported: word vectors of elsewhere, of which no more is read."""
    amounts = [f"{cap}tokens" for cap in caps] if len(caps) > 1 else [""]
    lines: list[Cell] = []
    named = [sized(find(name), size) for name in names]
    for arm in (under(encoder, arm) for encoder in ("", *encoders) for arm in named):
        reads = arm.source and (arm.states or arm.source not in imported)
        own = budgets if arm.chooses else amounts if reads else (arm.budget,)
        lines += [Cell(arm=arm, budget=budget) for budget in own]
    return lines


def under(encoder: str, arm: Arm) -> Arm:
    """The same arm from another encoder, "" for the experiment's own: same sentences, same labels."""
    if not encoder:
        return arm
    without = f"{arm.without}, from {encoder} too" if arm.name != NONE else "the experiment's own encoder"
    summary = f"{arm.summary} From {encoder}."
    return replace(arm, name=f"{arm.name} {ENCODER}{encoder}", encoder=encoder, summary=summary, without=without)


def set_size(rebuild: Mapping[str, object]) -> int:
    """Sentences of the set that a `low-share` arm trains on. rebuild: further options of rebuilding."""
    return RebuildOptions.parse(rebuild).size


def sized(arm: Arm, size: int) -> Arm:
    """The same arm; a share of a set with its size, beside which a random set of as many is its `none`."""
    shares = arm.rebuild == SHARE and not arm.size
    return replace(arm, size=size, without=f"{size:,} random sentences") if shares else arm
