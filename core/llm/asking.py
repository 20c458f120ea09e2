"""Ask a model about many sentences in parallel. Requests are repeated after problems, and answers are stored."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from core.errors import ModelError
from core.llm.answers import Answer, Answers
from core.llm.client import Client
from core.llm.prompt import REMINDER, quotes_in
from core.reporter import Reporter

# Seconds until the first retry after a problem of the server. Each further retry waits four times as long, at most
# LONGEST_WAIT seconds, because 10 retries would otherwise take four days.
BACKOFF, LONGEST_WAIT = 1.0, 60.0
# If none of this many first requests succeeds, no further request is sent.
FIRST = 5
NO_LIST = "no JSON list"
# seconds between two checks for a cancellation
_POLL = 0.1
# function that returns the body of a request; arguments: key of the request, and a hint to add to the prompt
Body = Callable[[str, str], bytes]


def ask_all(
    client: Client,
    answers: Answers,
    wanted: Mapping[str, int],
    body: Body,
    report: Reporter,
    *,
    at_once: int,
    retries: int,
) -> Counter[str]:
    """Send all requests that have no stored answer. Return the number of sentences without a usable answer, by reason.

    wanted: {key of a request: number of its sentences}. at_once: number of parallel requests. retries: number of
    repetitions of a request without a usable answer. Errors: ModelError if more than half of the sentences, or all of
    the first requests, get no usable answer; errors of `Client.ask`; Cancelled.
    """
    missing = iter([key for key in wanted if not answers.get(key)])
    total = sum(wanted.values())
    done = sum(times for key, times in wanted.items() if answers.get(key))
    failed, tried, problems = 0, 0, Counter[str]()
    running = dict[Future[Answer | str], str]()
    with ThreadPoolExecutor(at_once) as pool:
        try:
            while True:
                while len(running) < at_once and (key := next(missing, "")):
                    running[pool.submit(_ask, client, key, body, retries)] = key
                if not running:
                    return problems
                finished, _ = wait(running, timeout=_POLL, return_when=FIRST_COMPLETED)
                report.check()
                for future in finished:
                    key, outcome = running.pop(future), future.result()
                    done, tried = done + wanted[key], tried + 1
                    if isinstance(outcome, Answer):
                        answers.add(outcome)
                    else:
                        failed, problems[outcome] = failed + 1, problems[outcome] + wanted[key]
                    if 2 * problems.total() > total or failed == tried == FIRST:
                        raise _unusable(client, problems, done)
                    report.progress(done, total, "sentences")
        finally:
            client.close()
            for future in running:  # after Cancelled or an error, keep the answers that have arrived
                if future.done() and not future.exception() and isinstance(outcome := future.result(), Answer):
                    answers.add(outcome)


def in_words(counts: Mapping[str, int]) -> str:
    """Return counts by reason as text, such as "HTTP 500: 3, no JSON list: 1"."""
    return ", ".join(f"{reason}: {n:,}" for reason, n in sorted(counts.items()))


def _ask(client: Client, key: str, body: Body, retries: int) -> Answer | str:
    """Return a usable answer, or the problem of the last attempt."""
    began, hint, problem = time.monotonic(), "", ""
    for attempt in range(retries + 1):
        reply = client.ask(body(key, hint))
        if reply.problem:
            problem = reply.problem
            if not reply.again:
                break
            if attempt < retries:
                client.closed.wait(min(BACKOFF * 4**attempt, LONGEST_WAIT))
        elif quotes_in(reply.text) is None:
            # Add a hint, because the same request would get the same answer.
            problem, hint = NO_LIST, REMINDER
        else:
            return Answer(key=key, text=reply.text, seconds=round(time.monotonic() - began, 3))
    return problem


def _unusable(client: Client, problems: Mapping[str, int], done: int) -> ModelError:
    return ModelError(
        f"{client.server.address}: {sum(problems.values()):,} of the first {done:,} sentences got no usable answer "
        f"({in_words(problems)}); check the server's log, or choose another model. To try again, resume the run: it "
        "keeps all usable answers."
    )
