"""What pages and the command line may call, a module a subject: ids in, small values out. Nothing here loads torch.

Of corpora and runs: `corpora` (sealed corpora, their roles, samples), `uploads`, `runs` (begin, follow, stop),
`removals`, `audit`. Of selections: `selections` (choose, change, take away), `insights` (why, health, side by side),
`maps`, `regions`, `entities`. Of labels: `bias`, `reviews`, `rebuilding`, `assisting`. Of trainings: `training`,
`encoders`, `experiments`, `results`, `taggers`, `deliver`. Of texts: `similarity`. Of this machine: `home`, `machine`,
`door`, `privacy`. And `figures` (all of `core.plots`), `errors`, `shown`.
"""
