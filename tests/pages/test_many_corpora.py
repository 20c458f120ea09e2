"""The list of corpora after a year: each choice has left one."""

import os
from pathlib import Path

import numpy as np

from core.corpora.library import Library
from core.facade import corpora
from tests.conftest import Seal
from tests.pages.test_pages import opened


def test_the_newest_of_what_winnow_made_are_listed_and_all_of_it_when_asked(home: Path, seal: Seal) -> None:
    source = seal([f"The tenant of house {i} pays the rent ." for i in range(40)], "contracts")
    for number in range(21):
        name, origin = f"choice-{number:02}", {"from": source.fingerprint}
        sealed = Library(home).subset(source, np.array([number]), name=name, origin=origin)
        os.utime(sealed.path / "about.json", (number, number))
    app = opened("pages/1_Corpora.py")

    def listed() -> set[str]:
        [shown] = [html.proto.body for html in app.get("html") if "<caption>All corpora" in html.proto.body]
        return {f"choice-{number:02}" for number in range(21) if f"choice-{number:02}<" in shown} | (
            {"contracts"} if "<td>contracts<" in shown else set()
        )

    corpora.set_role("domain", source.fingerprint)
    app.run()

    def compared() -> int:
        [shown] = [
            html.proto.body for html in app.get("html") if "<caption>Sizes against each other" in html.proto.body
        ]
        return str(shown).count("<td>choice-")

    assert compared() == 20
    assert listed() == {"contracts", *(f"choice-{number:02}" for number in range(1, 21))}
    app.toggle(key="corpora.all").set_value(True).run()
    assert not app.exception
    assert compared() == 21
    assert listed() == {"contracts", *(f"choice-{number:02}" for number in range(21))}
