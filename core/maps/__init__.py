"""Maps of sentences for Explore: their layout, the points in a region, and the words that set it apart."""

from core import models as models  # torch's threads must sleep while they wait: set there, before torch is loaded
