"""What pages and the command line may call, a module a subject: ids in, small values out. Nothing here loads torch.

- Texts: `corpora` (sealed corpora, their roles, samples), `intake` (several files at once), `uploads`, `addresses`,
  `vectors`, `similarity`, `survey`, `ratios`, `prevalence`.
- Data: `checks` (what is wrong with it before a run starts).
- Runs: `runs` (begin, follow, stop), `removals`, `labels` (names, tags, notes), `run_comparison`, `commands`, `audit`.
- The choice: `choices`, `selections` (choose, change, take away), `insights` (why, health, side by side), `maps`,
  `regions`, `entities`, `atlas`.
- Labels: `labelling` (what to label next), `bias`, `reviews`, `rebuilding`, `assisting`.
- Trainings and what came of them: `training`, `encoders`, `taggers`, `predicted`, `deliver`, `experiments`, `studies`,
  `results`, `reports`, `papers`.
- Projects: `projects`, `road`, `find_out`.
- This machine and others: `home`, `machine`, `cluster`, `door`, `privacy`, `preferences`.
- Words and pictures: `terms`, `titles` (of runs), `shown`, `errors`, `figures` (all of `core.plots`).
"""
