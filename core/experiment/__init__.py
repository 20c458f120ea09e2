"""Compare variants on shared stages, with a verdict per variant; a study compares them on several tasks.

From options to result: `config` and `arms` (the lines that are run), `steps` (their runs, in order), `cost` and
`foresight` (before a start), `kind` and `fan` (making the runs), `leaderboard` (scores and verdicts), `result`,
`tables` and `words` (what is stored and shown). `study` repeats this over several tasks.
"""
