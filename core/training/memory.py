"""Memory that runs out in a training, as an error that says what a person can do about it."""

from collections.abc import Iterator
from contextlib import contextmanager

from core.errors import ResourceError, memory_ran_out


@contextmanager
def memory_watched(batch_size: int, accumulation: int) -> Iterator[None]:
    """Errors: ResourceError where memory runs out within; every other error as it is."""
    try:
        yield
    except Exception as error:
        if not memory_ran_out(error):
            raise
        # Twice the parts, not half the batch: the optimizer takes the same steps then, and results stay comparable.
        raise ResourceError(
            f"batch_size {batch_size}: memory ran out; set accumulation to {2 * accumulation}, which keeps the batch"
            " and takes it in smaller parts, or choose a smaller encoder."
        ) from error
