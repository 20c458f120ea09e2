"""Time a tagger's CRF: a training step and a decoded batch, with the loops of pytorch-crf and with `LinearChain`.

    python -m tests.lab.benchmarks.bench_crf [--threads 1] [--repeats 30]

A step computes the loss and its gradients. Decoding a batch gives the best sequences and the probability of every
word's tag. "before" uses pytorch-crf's Viterbi and log-sum-exp, and reads each word separately. "after" uses
`LinearChain`.
"""

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torchcrf import CRF

from core.models.crf import LinearChain, bioes_tags

SENTENCES, WORDS = 32, 40


def least(work: Callable[[], object], repeats: int) -> float:
    """Return the milliseconds of the fastest repetition, because other processes may use the machine too."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return 1e3 * min(times)


def looped(chain: LinearChain, emissions: Tensor, mask: Tensor) -> list[list[int]]:
    """Decode as before: pytorch-crf's Viterbi, log-sum-exp in both directions, one read per word."""
    emissions = emissions.double()
    begin, follow, end = (part.detach().double() for part in chain._learnt())
    ahead, behind = [begin + emissions[:, 0]], [end.expand(len(emissions), -1)]
    for i in range(1, WORDS):
        on = mask[:, i, None]
        ahead.append(torch.where(on, (ahead[-1][:, :, None] + follow).logsumexp(1) + emissions[:, i], ahead[-1]))
        j = WORDS - i
        back = (follow + (emissions[:, j] + behind[-1])[:, None]).logsumexp(2)
        behind.append(torch.where(mask[:, j, None], back, end))
    total = (ahead[-1] + end).logsumexp(1)
    paths: list[list[int]] = chain.decode(emissions.float(), mask)
    for row, path in enumerate(paths):
        for i, tag in enumerate(path):
            float((ahead[i][row, tag] + behind[WORDS - 1 - i][row, tag] - total[row]).exp())
    return paths


def figures(types: int, repeats: int) -> list[float]:
    """Return the milliseconds of a step before and after, and of a decoded batch before and after."""
    torch.manual_seed(0)
    chain = LinearChain(bioes_tags([f"t{i}" for i in range(types)]))
    emissions = 3 * torch.randn(SENTENCES, WORDS, chain.num_tags)
    mask = torch.arange(WORDS) < torch.randint(WORDS // 2, WORDS + 1, (SENTENCES, 1))
    mask[0] = True
    tags = torch.randint(chain.num_tags, mask.shape)

    def step(loss: Callable[..., Tensor]) -> None:
        torch.autograd.backward(loss(emissions.clone().requires_grad_(), tags, mask).sum())

    def decoded() -> None:
        with torch.inference_mode():
            path = chain.viterbi(emissions, mask)
            torch.stack([path.double(), *chain.posteriors(emissions, mask, path)], 1).tolist()

    printed = lambda *batch: -CRF.forward(chain, *batch, reduction="none")
    works = (lambda: step(printed), lambda: step(chain.loss), lambda: looped(chain, emissions, mask), decoded)
    return [least(work, repeats) for work in works]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=30)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    print("| tags | ms per step, before | after | ms per decoded batch, before | after |\n|---:|---:|---:|---:|---:|")
    for types in (2, 14):
        print(f"| {4 * types + 1} |", " | ".join(f"{ms:.1f}" for ms in figures(types, given.repeats)), "|", flush=True)


if __name__ == "__main__":
    main()
