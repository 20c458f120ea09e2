"""A fork server that has imported what a run of any kind imports."""

from tests import fork_server

PARTS = ("core.projects.runs", "umap", "gensim.models")

if __name__ == "__main__":
    fork_server.main((*fork_server.PARTS, *PARTS))
