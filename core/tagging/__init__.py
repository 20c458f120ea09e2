"""Train taggers, evaluate them, and apply them to text.

`config`, `network` and `finetune` train taggers, and `card` writes their model cards. `predict` tags text and tests
taggers; `predictions` stores the entities found. `evaluations` stores test results, and `result` compares them.
`calibrate` times this machine, and `estimate` predicts the cost of a training. `view`, `plot` and `cli` serve pages and
commands.
"""
