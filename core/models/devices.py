"""Which device and which precision a model runs in."""

from typing import TYPE_CHECKING, Literal

from core.errors import ResourceError

if TYPE_CHECKING:
    import torch

Precision = Literal["auto", "bf16", "fp32"]


def pick_device(name: str = "auto") -> "torch.device":
    """`auto`: the GPU where there is one, else the CPU; or a device by its torch name.

    Errors: ResourceError for a device that this machine does not have.
    """
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ResourceError(f"device: {name!r} is not on this machine; give auto, cpu, cuda or cuda:1.") from error
    return device


def pick_dtype(precision: Precision, device: "torch.device") -> "torch.dtype":
    """bfloat16 where asked for or, under `auto`, where the device computes in it natively; else float32."""
    import torch

    if precision == "fp32" or (precision == "auto" and not _has_bf16(device)):
        return torch.float32
    return torch.bfloat16


def _has_bf16(device: "torch.device") -> bool:
    import torch

    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type == "cpu":
        # Private in torch 2.13, where it has no public name; without these units bf16 is slower than fp32.
        return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
    return False
