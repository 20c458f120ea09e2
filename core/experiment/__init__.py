"""Compare the variants of an experiment and give each a verdict; a study repeats this on several tasks.

The main modules, in the order in which an experiment uses them:

- `config`, `arms`: options, and the variants to run
- `steps`: the runs that each variant needs, in order
- `cost`, `foresight`: estimates before the start
- `kind`: executes the runs
- `leaderboard`: scores and verdicts
- `result`: the result as it is stored
- `tables`, `words`: the result as it is shown
- `study`: the same comparison on several tasks
"""
