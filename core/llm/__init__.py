"""Language models that the user runs: asked to tag test sets after a few examples."""
