"""Run a fork server that has imported everything that runs of any kind import."""

from tests import fork_server

PARTS = ("core.projects.runs", "umap", "gensim.models")

if __name__ == "__main__":
    fork_server.main((*fork_server.PARTS, *PARTS))
