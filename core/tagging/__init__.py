"""Train taggers, evaluate them, and apply them to text.

`config`, `network` and `finetune` train taggers, and `card` describes one. `predict` tags and tests; `predictions`
stores the entities found. `evaluations` holds test results, and `result` compares them. `calibrate` times this
machine, and `estimate` predicts the cost of a training. `view`, `plot` and `cli` serve pages and commands.
"""
