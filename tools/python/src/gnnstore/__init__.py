"""Reads datasets and runs of gnnstore without copying them, and trains by its binary.

Start at Dataset, Run and train. Arrays are NumPy maps of the files on disk: they are read-only, and
stay valid while anything refers to them. Only three methods import more than NumPy: Dataset.to_pyg
and Run.model import PyTorch Geometric, and Run.dataframe imports pandas.
"""

from .binary import Error, binary
from .dataset import Dataset
from .run import Run, predictions, train

__all__ = ["Dataset", "Error", "Run", "binary", "predictions", "train"]
