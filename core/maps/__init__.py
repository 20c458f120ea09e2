"""What Explore draws: where sentences lie, which of them a region holds, and the words that tell it from the rest."""

from core import models as models  # torch's threads must sleep while they wait: said there, before torch is loaded
