"""Compare the variants of an experiment and give each a verdict; a study repeats this on several tasks.

Modules, from options to result:

- `config`, `arms`: options, and the variants to run
- `steps`: runs of each variant, in order
- `cost`, `foresight`: estimates before the start
- `kind`: makes the runs
- `leaderboard`: scores and verdicts
- `result`, `tables`, `words`: data to store and words to show
- `study`: the same on several tasks
"""
