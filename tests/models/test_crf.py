"""The linear-chain CRF against pytorch-crf and enumeration: loss, gradients, best sequences, posteriors."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TypedDict, Unpack

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torchcrf import CRF

from core.models import crf as crf_module
from core.models.crf import FARTHEST, Head, LinearChain, bioes_tags, sums
from core.models.tagger import IGNORED, labels_of
from core.text.schemes import decode, encode
from core.text.sentence import Entity
from tests.conftest import sentence

TAGS = bioes_tags(["A"])  # O B I E S
WAYS = {"products": math.inf, "logarithms": 0.0}  # values of FARTHEST that force one implementation


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crf_module, "FARTHEST", WAYS[request.param])


Loss = Callable[[Tensor, Tensor, Tensor], Tensor]  # of emissions, tags and mask


class Options(TypedDict, total=False):
    head: Head
    constrained: bool


def chain(seed: int = 0, tags: Sequence[str] = TAGS, **options: Unpack[Options]) -> LinearChain:
    torch.manual_seed(seed)
    crf: LinearChain = LinearChain(tags, **options).double()
    for scores in crf.parameters():
        if scores.requires_grad:
            nn.init.normal_(scores)
    return crf


def words_on(lengths: Sequence[int]) -> Tensor:
    return torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


@torch.no_grad()
def scored(crf: LinearChain, emissions: Tensor, path: Sequence[int]) -> float:
    begin, follow, end = crf._scores(crf.constrained)
    steps = sum(follow[a, b] for a, b in itertools.pairwise(path))
    return float(begin[path[0]] + end[path[-1]] + steps + sum(emissions[i, tag] for i, tag in enumerate(path)))


def every_path(crf: LinearChain, emissions: Tensor) -> tuple[list[tuple[int, ...]], list[float]]:
    paths = list(itertools.product(range(len(crf.tags)), repeat=len(emissions)))
    return paths, [scored(crf, emissions, path) for path in paths]


def posteriors(crf: LinearChain, emissions: Tensor, spans: Sequence[Entity]) -> list[float]:
    """Return the confidence of each span in one sentence."""
    n = len(emissions)
    paths = torch.tensor([[crf.tags.index(tag) for tag in encode([span], n, "bioes")] for span in spans])
    mask = torch.ones(len(spans), n, dtype=torch.bool)
    first, last = crf.posteriors(emissions.expand(len(spans), -1, -1), mask, paths)
    return [math.exp(a[s.start] + b[s.end - 1]) for s, a, b in zip(spans, first, last, strict=True)]


def assert_posteriors_are_the_sums(
    crf: LinearChain, emissions: Tensor, paths: Sequence[Sequence[int]], shares: Sequence[float]
) -> None:
    """Assert that the posterior of each possible span is the sum over all sequences that contain it."""
    n = len(emissions)
    spans = [Entity(start=a, end=b, type="A") for a in range(n) for b in range(a + 1, n + 1)]
    weight = dict.fromkeys(spans, 0.0)
    for path, share in zip(paths, shares, strict=True):
        for span in decode([TAGS[i] for i in path], "bioes", strict=True)[0]:
            weight[span] += share
    assert posteriors(crf, emissions, spans) == pytest.approx([weight[span] for span in spans], abs=1e-10)


def gradients(
    crf: LinearChain, loss: Loss, emissions: Tensor, tags: Tensor, mask: Tensor, weights: Tensor
) -> tuple[Tensor, ...]:
    """Return losses, and the gradients of their weighted sum with respect to emissions and parameters."""
    emissions = emissions.clone().requires_grad_()
    losses = loss(emissions, tags, mask)
    inputs = [emissions, *crf.parameters()]
    return losses.detach(), *torch.autograd.grad((losses * weights).sum(), inputs, materialize_grads=True)


def printed(crf: LinearChain) -> Loss:
    """Return the loss of pytorch-crf."""
    return lambda emissions, tags, mask: -CRF.forward(crf, emissions, tags, mask, reduction="none")


def same(ours: Sequence[Tensor], theirs: Sequence[Tensor], within: float = 1e-8) -> None:
    assert all(torch.isfinite(one).all() for one in ours)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=within)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("options", [{}, {"constrained": True}, {"head": "softmax"}])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_loss_viterbi_and_posteriors_equal_enumeration(n: int, options: Options) -> None:
    crf = chain(n, **options)
    emissions = torch.randn(n, len(TAGS), dtype=torch.float64)
    paths, scores = every_path(crf, emissions)
    total = math.log(sum(map(math.exp, scores)))
    mask = torch.ones(1, n, dtype=torch.bool)
    possible = [path for path, score in zip(paths, scores, strict=True) if score > -math.inf]
    assert (len(possible) < len(paths)) == crf.constrained
    tags = torch.tensor([possible[int(torch.randint(len(possible), ()))]])
    expected = total - scored(crf, emissions, tags[0].tolist())
    for temperature in (1.0, 0.3, 4.0):  # influences only the posteriors
        crf.temperature = temperature
        assert tuple(crf.viterbi(emissions[None], mask)[0].tolist()) == paths[scores.index(max(scores))]
        assert float(crf.loss(emissions[None], tags, mask).detach()) == pytest.approx(expected, abs=1e-4)
        heated = [math.exp(score / temperature) for score in scores]
        shares = [share / sum(heated) for share in heated]
        assert_posteriors_are_the_sums(crf, emissions, paths, shares)


@torch.no_grad()
def word_by_word(crf: LinearChain, emissions: Tensor, path: Sequence[int]) -> list[float]:
    """Return the probability of every tag given the previous one, from the definition of a `memm`."""
    _, follow, _ = crf._scores(crf.constrained)
    first = emissions[0].masked_fill(crf._illegal_begin, -math.inf) if crf.constrained else emissions[0]
    words = [first, *(emissions[i] + follow[path[i - 1]] for i in range(1, len(path)))]
    return [float(word.softmax(0)[tag]) for word, tag in zip(words, path, strict=True)]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("constrained", [False, True])
def test_memm_normalises_each_word_given_the_previous_tag(constrained: bool) -> None:
    n, crf = 4, chain(3, head="memm", constrained=constrained)
    assert not crf.start_transitions.any()
    assert not crf.end_transitions.any()
    emissions = 2 * torch.randn(n, len(TAGS), dtype=torch.float64)
    mask = torch.ones(1, n, dtype=torch.bool)
    paths = list(itertools.product(range(len(TAGS)), repeat=n))
    chances = [math.prod(word_by_word(crf, emissions, path)) for path in paths]
    assert sum(chances) == pytest.approx(1.0)
    likely = paths[max(range(len(paths)), key=lambda i: chances[i] * (TAGS[paths[i][-1]][0] in "OES"))]
    loss = crf.loss(emissions[None], torch.tensor([likely]), mask)
    assert math.exp(-float(loss.detach())) == pytest.approx(math.prod(word_by_word(crf, emissions, likely)))

    ends = [1.0 if not constrained or TAGS[path[-1]][0] in "OES" else 0.0 for path in paths]
    total = sum(chance * end for chance, end in zip(chances, ends, strict=True))
    shares = [chance * end / total for chance, end in zip(chances, ends, strict=True)]
    assert_posteriors_are_the_sums(crf, emissions, paths, shares)


@torch.no_grad()
@pytest.mark.parametrize("constrained", [False, True])
def test_memm_decodes_greedily(constrained: bool) -> None:
    crf = chain(4, head="memm", constrained=constrained)
    emissions, mask = 2 * torch.randn(60, 5, len(TAGS), dtype=torch.float64), words_on([5, 2, 1, 4] * 15)
    best = crf.viterbi(emissions, mask)
    _, follow, _ = crf._scores(constrained)
    broken = 0
    for row, n in enumerate(mask.sum(1).tolist()):
        path = best[row, :n].tolist()
        broken += bool(decode([TAGS[i] for i in path], "bioes")[1])
        for i, tag in enumerate(path):
            scores = emissions[row, i] + (follow[path[i - 1]] if i else 0.0)
            legal = scores.masked_fill(crf._illegal_begin, -math.inf) if constrained and not i else scores
            legal = legal.masked_fill(crf._illegal_end, -math.inf) if constrained and i == n - 1 else legal
            assert tag == int(legal.argmax())
    assert (broken == 0) == constrained


batches = st.tuples(
    st.integers(0, 2**20),  # seed
    st.sampled_from([1, 2, 3, 14]),  # types; 14 have 57 tags
    st.lists(st.integers(1, 12), min_size=1, max_size=5),  # words of each sentence
    st.sampled_from([0.1, 3.0, 30.0]),  # spread of emissions
)


@pytest.mark.parametrize("farthest", WAYS.values(), ids=WAYS)
@settings(max_examples=60, deadline=None)
@given(batch=batches)
def test_loss_gradients_and_best_sequences_equal_pytorch_crf(
    farthest: float, batch: tuple[int, int, list[int], float]
) -> None:
    seed, types, lengths, spread = batch
    crf, mask = chain(seed, bioes_tags([f"t{i}" for i in range(types)])), words_on(lengths)
    emissions = spread * torch.randn(*mask.shape, crf.num_tags, dtype=torch.float64)
    tags, weights = torch.randint(crf.num_tags, mask.shape), torch.rand(len(lengths), dtype=torch.float64)
    given = (emissions, tags, mask, weights)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crf_module, "FARTHEST", farthest)
        same(gradients(crf, crf.loss, *given), gradients(crf, printed(crf), *given))
    best = [path[:n].tolist() for path, n in zip(crf.viterbi(emissions, mask), lengths, strict=True)]
    assert best == crf.decode(emissions, mask)


@pytest.mark.usefixtures("way")
def test_long_and_short_sentences_in_float32_equal_float64() -> None:
    lengths = [600, 1, 37]
    crf, mask = chain(4, bioes_tags([f"t{i}" for i in range(14)])).float(), words_on(lengths)
    emissions, tags = 5 * torch.randn(*mask.shape, crf.num_tags), torch.randint(crf.num_tags, mask.shape)
    weights = torch.tensor([1.0, 0.5, 0.0])
    ours, again = (gradients(crf, crf.loss, emissions, tags, mask, weights) for _ in range(2))
    assert {one.dtype for one in ours} == {torch.float32}
    assert all(torch.equal(one, other) for one, other in zip(ours, again, strict=True))
    exact = gradients(crf.double(), printed(crf), emissions.double(), tags, mask, weights)
    torch.testing.assert_close(ours, tuple(one.float() for one in exact), rtol=1e-6, atol=1e-4)


def test_loss_and_gradients_of_extreme_scores_equal_pytorch_crf() -> None:
    """`exp(-10,000)` underflows beside `exp(10)`, but in the first case every sequence has such a transition."""
    crf = chain(6, bioes_tags(["A", "B"]))
    with torch.no_grad():
        crf.transitions.copy_(torch.where(torch.rand(9, 9) < 0.5, -10_000.0, 10.0))
        crf.transitions[:, 3:] = -10_000.0  # only O, B-A and I-A are reached freely
        crf.end_transitions.fill_(-10_000.0)
        crf.end_transitions[5] = 10.0
    mask = words_on([7, 2, 1])
    emissions, tags = torch.randn(3, 7, 9, dtype=torch.float64), torch.randint(9, (3, 7))
    given = (emissions, tags, mask, torch.ones(3, dtype=torch.float64))
    ours = gradients(crf, crf.loss, *given)
    assert ours[0].max() > 9_000
    same(ours, gradients(crf, printed(crf), *given))
    assert crf._near(torch.zeros_like(emissions)) is False

    # One step loses little precision by a product, but all steps together exceed the range of float64.
    crf = chain(7)
    with torch.no_grad():
        for scores in crf.parameters():
            scores.zero_()
        crf.transitions.fill_(-150.0).fill_diagonal_(0.0)
    emissions = torch.zeros(1, 12, 5, dtype=torch.float64)
    emissions[0, :6, 0], emissions[0, 6:, 1] = 149.0, 149.0
    given = (emissions, torch.ones(1, 12, dtype=torch.int64), words_on([12]), torch.ones(1, dtype=torch.float64))
    same(gradients(crf, crf.loss, *given), gradients(crf, printed(crf), *given))


@pytest.mark.parametrize("forbidden", [-math.inf, -1e4, -1e30])
def test_forbidden_transitions_exclude_their_sequences(forbidden: float) -> None:
    crf = chain(8)
    begin, follow, end = crf_module._illegal(TAGS)
    with torch.no_grad():
        for scores, off in zip(crf.parameters(), (begin, end, follow), strict=True):
            assert scores.shape == off.shape
            scores.masked_fill_(off, forbidden)
    emissions = torch.randn(3, 5, 5, dtype=torch.float64)
    mask = words_on([5, 1, 3])
    gold = [["B-A", "I-A", "E-A", "O", "S-A"], ["O"] * 5, ["O", "B-A", "E-A", "O", "O"]]
    tags = torch.tensor([[TAGS.index(tag) for tag in row] for row in gold])
    losses, of_emissions, *of_scores = gradients(crf, crf.loss, emissions, tags, mask, torch.ones(3))
    for row, n in enumerate([5, 1, 3]):
        scores = [score for _, score in zip(*every_path(crf, emissions[row, :n]), strict=True) if score > -1e3]
        total = math.log(sum(map(math.exp, scores)))
        expected = total - scored(crf, emissions[row, :n], tags[row, :n].tolist())
        assert float(losses[row]) == pytest.approx(expected, abs=1e-8)
    assert all(torch.isfinite(one).all() for one in (of_emissions, *of_scores))
    for one, off in zip(of_scores, (begin, end, follow), strict=True):
        assert not one[off].any()
    assert of_emissions.sum(2).abs().max() < 1e-10  # expected and actual numbers of tags are equal

    broken = tags.clone()
    broken[0, 0] = TAGS.index("I-A")
    losses, *rest = gradients(crf, crf.loss, emissions, broken, mask, torch.ones(3))
    assert losses[0] > 9_000
    assert not any(torch.isnan(one).any() for one in (losses, *rest))


@pytest.mark.usefixtures("way")
def test_constrained_chain_learns_only_legal_sequences() -> None:
    """The result equals pytorch-crf with a large penalty on illegal transitions."""
    crf = chain(10, bioes_tags(["A", "B"]), constrained=True)
    penalised = chain(10, crf.tags)
    illegal = crf_module._illegal(crf.tags)
    with torch.no_grad():
        for scores, off in zip(penalised._learnt(), illegal, strict=True):
            scores.masked_fill_(off, -1e4)
    words = [sentence("a b c d e f", [(0, 3, "A"), (4, 5, "B")]), sentence("a", [(0, 1, "B")]), sentence("a b", [])]
    labels = labels_of(words, [{tag: i for i, tag in enumerate(crf.tags)}] * 3)
    emissions = torch.randn(3, 6, crf.num_tags, dtype=torch.float64)
    given = (emissions, labels.clamp(min=0), labels != IGNORED, torch.rand(3, dtype=torch.float64))
    ours = gradients(crf, crf.loss, *given)
    same(ours, gradients(penalised, printed(penalised), *given))
    begin, end, follow = ours[2:]
    assert not any(one[off].any() for one, off in zip((begin, follow, end), illegal, strict=True))
    assert (ours[0] < gradients(chain(10, crf.tags), printed(chain(10, crf.tags)), *given)[0]).all()


@settings(deadline=None)
@given(spans=st.lists(st.tuples(st.integers(0, 8), st.integers(1, 4), st.sampled_from("AB")), max_size=6))
def test_tags_of_training_sentences_are_never_forbidden(spans: list[tuple[int, int, str]]) -> None:
    entities, end = list[tuple[int, int, str]](), 0
    for gap, length, name in spans:
        entities.append((end + gap, end + gap + length, name))
        end += gap + length
    tags = bioes_tags(["A", "B"])
    labels = labels_of([sentence("w " * (end + 1), entities)], [{tag: i for i, tag in enumerate(tags)}])[0]
    begin, follow, last = crf_module._illegal(tags)
    assert not begin[labels[0]]
    assert not follow[labels[:-1], labels[1:]].any()
    assert not last[labels[-1]]
    steps = [torch.linalg.matrix_power((~follow).double(), n) > 0 for n in (2, 3)]
    assert [bool(each.all()) for each in steps] == [False, True]  # three steps lead from any tag to any other


@pytest.mark.parametrize("constrained", [False, True])
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**20), lengths=st.lists(st.integers(1, 30), min_size=1, max_size=3), share=st.floats(0, 1))
def test_products_are_exact_up_to_their_limit(constrained: bool, seed: int, lengths: list[int], share: float) -> None:
    """Scores are as far apart as allowed, and binary."""
    crf, mask = chain(seed, bioes_tags(["A", "B"]), constrained=constrained), words_on(lengths)
    room = 0.999 * FARTHEST / 7 - math.log(crf.num_tags)
    emissions = share * room * torch.randint(2, (*mask.shape, crf.num_tags)).double()
    with torch.no_grad():
        for scores in crf.parameters():
            scores.copy_((1 - share) * room * torch.randint(2, scores.shape))
    assert crf._near(emissions)
    assert not crf._near(1.01 * FARTHEST / 7 * torch.eye(crf.num_tags)[None])
    scores = crf._scores(constrained)
    by_products, by_logarithms = (sums(emissions, mask, scores, scaled=scaled) for scaled in (True, False))
    for one, other in zip(by_products, by_logarithms, strict=True):
        own = mask[..., None] if one.dim() == 3 else torch.ones_like(one, dtype=torch.bool)
        torch.testing.assert_close(one.masked_fill(~own, 0.0), other.masked_fill(~own, 0.0), rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("way")
def test_padding_does_not_change_losses_gradients_or_sequences() -> None:
    crf = chain(1)
    emissions = torch.randn(3, 6, len(TAGS), dtype=torch.float64)
    lengths = [6, 3, 1]
    mask = words_on(lengths)
    tags = torch.randint(len(TAGS), (3, 6))
    together = gradients(crf, crf.loss, emissions, tags, mask, torch.ones(3))
    paths = crf.viterbi(emissions, mask)
    sure = crf.posteriors(emissions, mask, paths)
    alone = []
    for row, n in enumerate(lengths):
        one, on = emissions[row : row + 1, :n], mask[row : row + 1, :n]
        alone.append(gradients(crf, crf.loss, one, tags[row : row + 1, :n], on, torch.ones(1)))
        assert float(alone[-1][0]) == pytest.approx(float(together[0][row]), abs=1e-4)
        torch.testing.assert_close(alone[-1][1][0], together[1][row, :n])
        assert not together[1][row, n:].any()
        assert crf.viterbi(one, on)[0].tolist() == paths[row, :n].tolist()
        for ours, theirs in zip(crf.posteriors(one, on, paths[row : row + 1, :n]), sure, strict=True):
            torch.testing.assert_close(ours[0], theirs[row, :n])
    for together_all, *each in zip(together[2:], *(one[2:] for one in alone), strict=True):
        torch.testing.assert_close(sum(each), together_all)


def test_constrained_chain_predicts_only_legal_tags() -> None:
    crf = chain(2, constrained=True)
    free = LinearChain(TAGS).double()
    free.load_state_dict(crf.state_dict())
    emissions = torch.randn(200, 7, len(TAGS), dtype=torch.float64) * 3
    mask = torch.ones(200, 7, dtype=torch.bool)
    repaired = [
        sum(decode([TAGS[i] for i in path], "bioes")[1] for path in model.viterbi(emissions, mask).tolist())
        for model in (crf, free)
    ]
    assert repaired[0] == 0 < repaired[1]
    softmax = chain(3, head="softmax")
    assert not any(scores.requires_grad for scores in softmax.parameters())
    assert torch.equal(softmax.viterbi(emissions, mask), emissions.argmax(-1))


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("unknown", [(), (0,), (1, 2), (0, 1, 2, 3)])
def test_words_of_unknown_tag_may_have_any(way: None, unknown: tuple[int, ...], constrained: bool) -> None:
    crf, emissions = chain(3, constrained=constrained), torch.randn(2, 4, 5, dtype=torch.double, requires_grad=True)
    tags = torch.tensor([[0, 1, 3, 0], [4, 0, 0, 0]])  # O B E O, and S O with padding
    mask, free = words_on([4, 2]), torch.zeros(2, 4, dtype=torch.bool)
    free[0, list(unknown)] = True
    by_hand = torch.zeros(2, dtype=torch.double)
    for row, n in enumerate((4, 2)):
        paths, scores = every_path_scores(crf, emissions[row, :n])
        right = [
            i
            for i, path in enumerate(paths)
            if all(free[row, at] or tag == tags[row, at] for at, tag in enumerate(path))
        ]
        by_hand[row] = scores.logsumexp(0) - scores[right].logsumexp(0)
    expected = torch.autograd.grad(by_hand.sum(), [emissions, *crf.parameters()])
    loss = crf.loss(emissions, tags, mask, free)
    assert loss.detach() == pytest.approx(by_hand.detach(), abs=1e-9)
    for got, wanted in zip(torch.autograd.grad(loss.sum(), [emissions, *crf.parameters()]), expected, strict=True):
        assert torch.allclose(got, wanted, atol=1e-9)


def every_path_scores(crf: LinearChain, emissions: Tensor) -> tuple[list[tuple[int, ...]], Tensor]:
    """Return every tag sequence, and their scores as a function of the weights, for autograd."""
    begin, follow, end = crf._scores(crf.constrained)
    paths = list(itertools.product(range(len(crf.tags)), repeat=len(emissions)))
    scores = [
        begin[path[0]]
        + end[path[-1]]
        + sum((follow[a, b] for a, b in itertools.pairwise(path)), torch.tensor(0.0))
        + sum(emissions[i, tag] for i, tag in enumerate(path))
        for path in paths
    ]
    keep = [i for i, score in enumerate(scores) if math.isfinite(score.item())]
    return [paths[i] for i in keep], torch.stack([scores[i] for i in keep])


def test_softmax_leaves_words_of_unknown_tag_out() -> None:
    crf, emissions = chain(head="softmax"), torch.randn(1, 3, 5, dtype=torch.double)
    tags, mask = torch.tensor([[0, 4, 0]]), words_on([3])
    some = crf.loss(emissions, tags, mask, torch.tensor([[False, True, False]]))
    assert some == pytest.approx(crf.loss(emissions[:, ::2], tags[:, ::2], words_on([2])))
