"""Writes meta.pt and split_dict.pt with NumPy and PyTorch, for the tests of ingest/mag240m, as the challenge has them.

Every file here but this one came of: python make.py
"""

import numpy as np
import torch

torch.save({"paper": 60, "author": 40, "institution": 5, "num_classes": 7}, "meta.pt")
torch.save({"paper": 60, "author": 40, "institution": 5, "num_classes": np.int64(7)}, "meta.legacy.pt", _use_new_zipfile_serialization=False)

train, valid, test = np.arange(0, 30), np.arange(30, 40), np.arange(59, 39, -1)
dev = np.arange(len(test)) % 5 < 3
new = {"train": train, "valid": valid, "test-whole": test, "test-dev": test[dev], "test-challenge": test[~dev]}
torch.save(new, "split_dict.pt")
torch.save({"train": train, "valid": valid, "test": test}, "split_dict.older.pt")
torch.save({"train": train, "valid": valid, "test": test}, "split_dict.legacy.pt", _use_new_zipfile_serialization=False)
torch.save({k: v.astype(np.int32) for k, v in new.items() if k != "test-whole"}, "split_dict.parts.pt")
