"""A card's memory: given back when work ends, and work done in smaller parts where it runs out."""

import gc
import sys


def give_back() -> None:
    """Let go of what nobody uses any more; the most that was taken is counted anew.

    A tagger, a Trainer and a language model refer to themselves, so that they and Adam's moments stay until they are
    collected; and torch keeps the card's memory for itself until it is told not to.
    """
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
