"""A name for a lasso or a box, by which it is picked again, also in an exported project."""

import streamlit as st

from core.explore import regions
from core.explore.regions import Region
from pages.ui.presses import pressed


def name_it(map_run: str, region: Region) -> None:
    """Draw the popover that names what is picked."""
    token = regions.region_token(region)
    before = regions.named_regions(map_run).get(token, "")
    with st.popover("Rename" if before else "Name it", icon=":material/bookmark:", key="explore.naming"):
        name = st.text_input("Name", before, regions.LONGEST, key=f"explore.named.{token}", placeholder="boilerplate")
        if pressed("Keep the name", "explore.name"):
            regions.name_region(map_run, region, name)
            st.rerun()
