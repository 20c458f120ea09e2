"""A forge that has imported what a run of any kind imports."""

from tests import forge

PARTS = ("core.projects.runs", "umap", "gensim.models")

if __name__ == "__main__":
    forge.main((*forge.PARTS, *PARTS))
