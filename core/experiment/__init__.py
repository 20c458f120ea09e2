"""Compare variants on shared stages, with a verdict per variant; a study compares them on several tasks.

From options to result: `config` and `arms` (which variants are run), `steps` (their runs, in order), `cost` and
`foresight` (estimates before a start), `kind` (makes the runs), `leaderboard` (scores and verdicts), `result`, `tables`
and `words` (what is stored and shown). `study` repeats this over several tasks.
"""
