"""Writes the datasets in this folder with NumPy and PyTorch, as OGB's own writer does (ogb/io/save_dataset.py).

Every file here but this one came of: python make.py
"""

import os
import pickle

import numpy as np
import torch


def save(path, **arrays):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    np.savez_compressed(path, **arrays)


def split(path, parts, legacy=False):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    torch.save(parts, path, _use_new_zipfile_serialization=not legacy)


n, e = 40, 300
i = np.arange(e)
edge_index = np.stack([i % n, (7 * i + 3) % n])
label = np.full((n, 1), np.nan, np.float32)
label[::4, 0] = np.arange(n // 4) % 3
parts = {
    "train": np.arange(0, n, 4),
    "valid": np.arange(1, n, 8),
    "test": np.arange(3, n, 8),
}

top = "papers100M-bin"
save(
    f"{top}/raw/data.npz",
    edge_index=edge_index,
    num_nodes_list=np.array([n]),
    num_edges_list=np.array([e]),
    node_feat=(np.arange(n * 3).reshape(n, 3) / 8).astype(np.float32),
    node_year=2000 + np.arange(n).reshape(n, 1),
    edge_weight=(i.reshape(e, 1) / 4).astype(np.float32),
    edge_year=1990 + i.reshape(e, 1),
    edge_feat=np.stack([i, -i], 1).astype(np.float32),
)
save(f"{top}/raw/node-label.npz", node_label=label)
split(f"{top}/split/time/split_dict.pt", parts)

# Two types, one relation between them and one within the first; the same parts by type, in PyTorch's old container.
top = "typed"
triplets = {
    "field_of_study___part_of___field_of_study": np.stack([i[:5], i[:5][::-1]]),
    "paper___has_topic___field_of_study": np.stack([i % n, i % 5]),
}
save(f"{top}/raw/num_nodes_dict.npz", paper=np.array([n]), field_of_study=np.array([5]))
save(f"{top}/raw/num_edges_dict.npz", **{k: np.array([v.shape[1]]) for k, v in triplets.items()})
save(f"{top}/raw/edge_index_dict.npz", **triplets)
save(f"{top}/raw/node_feat.npz", paper=np.ones((n, 2), np.float32))
save(f"{top}/raw/node_year.npz", paper=np.full((n, 1), 2001))
save(f"{top}/raw/edge_reltype.npz", **{k: np.full((v.shape[1], 1), j) for j, (k, v) in enumerate(triplets.items())})
save(f"{top}/raw/edge_feat.npz", paper___has_topic___field_of_study=np.stack([i, i, i], 1).astype(np.float32))
save(f"{top}/raw/node-label.npz", paper=label.astype(np.float64))
split(f"{top}/split/time/split_dict.pt", {k: {"paper": v} for k, v in parts.items()}, legacy=True)

# What else a split may be.
for protocol in range(2, 6):
    os.makedirs("dicts", exist_ok=True)
    torch.save(parts, f"dicts/zip{protocol}.pt", pickle_protocol=protocol)
    torch.save(parts, f"dicts/legacy{protocol}.pt", pickle_protocol=protocol, _use_new_zipfile_serialization=False)
    with open(f"dicts/plain{protocol}.pt", "wb") as f:
        pickle.dump(parts, f, protocol)
torch.save({k: torch.from_numpy(v) for k, v in parts.items()}, "dicts/tensors.pt")
torch.save({k: torch.from_numpy(v)[:, None] for k, v in parts.items()}, "dicts/columns.pt")
torch.save({k: v.tolist() for k, v in parts.items()}, "dicts/lists.pt")
