"""From something (an image, a row of a table, a category) to a vector."""

from tacit.encoders.base import Encoder, Space
from tacit.encoders.category import Category
from tacit.encoders.image import Image
from tacit.encoders.problem import Problem
from tacit.encoders.table import Table

__all__ = ["Category", "Encoder", "Image", "Problem", "Space", "Table"]
