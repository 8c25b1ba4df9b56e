"""Writes the files of this folder, as PyTorch and PyTorch Geometric save them, for the tests of ingest/torch.

    python -m venv env
    env/bin/pip install -r tools/refnums/requirements.txt
    env/bin/python ingest/torch/testdata/make.py ingest/torch/testdata

all.zip.pN.pt and all.legacy.pN.pt hold one dict of everything under pickle protocol N, in PyTorch's two containers; the
values stand in the tests as well. Nothing runs this but people: the files are committed.
"""

import sys
import warnings

import numpy as np
import torch
from torch_geometric.data import Data, HeteroData

warnings.filterwarnings("ignore")
OUT = sys.argv[1] + "/"


def everything(zip_form):
    six = torch.arange(6).reshape(2, 3) - 1
    shared = torch.arange(10, 18)
    v = {name: six.to(t) for name, t in {
        "long": torch.int64, "int": torch.int32, "short": torch.int16, "char": torch.int8, "float": torch.float32,
        "double": torch.float64, "half": torch.float16, "bfloat16": torch.bfloat16}.items()}
    v["byte"] = torch.tensor([0, 200, 255], dtype=torch.uint8)
    v["bool"] = torch.tensor([[True, False], [False, True]])
    v["transposed"] = torch.arange(12.).reshape(3, 4).t()
    v["slice"] = torch.arange(20).reshape(4, 5)[1:3, 1:4:2]
    v["cube"] = torch.arange(24, dtype=torch.int32).reshape(2, 3, 4).permute(2, 0, 1)
    v["expanded"] = torch.tensor([7, 8]).reshape(2, 1).expand(2, 3)
    v["first"], v["rest"] = shared[:3], shared[3:]
    v["again"] = v["first"]
    v["scalar"] = torch.tensor(5)
    v["empty"] = torch.zeros(0, 3)
    v["parameter"] = torch.nn.Parameter(torch.tensor([1.5]))
    v["complex"] = torch.tensor([1j])
    v["sparse"] = torch.tensor([[0., 2.], [3., 0.]]).to_sparse()
    v["numpy"] = np.arange(3, dtype=np.int64) * 100
    v["number"] = np.float64(0.25)
    v["weights"] = torch.nn.Linear(2, 1, bias=False).double().state_dict()
    v["weights"]["weight"].copy_(torch.tensor([[1., 2.]]))
    v["shape"], v["type"], v["device"] = torch.Size([3, 4]), torch.int8, torch.device("cpu")
    v["plain"] = [1, 2.5, "text", None, True, (1 << 40, -3), b"\xff\x00"]
    if zip_form:
        v["uint16"] = torch.tensor([1, 65535], dtype=torch.uint16)
        v["uint32"] = torch.tensor([1, 4294967295], dtype=torch.uint32)
        v["uint64"] = torch.tensor([1, 2], dtype=torch.uint64)
        v["float8"] = torch.tensor([1.0]).to(torch.float8_e4m3fn)
    return v


def graph():
    return Data(
        x=torch.arange(8.).reshape(4, 2), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]),
        edge_attr=torch.tensor([[1.0], [0.5], [0.25], [2.0]]), y=torch.tensor([0, 1, 1, 0]),
        train_mask=torch.tensor([True, True, False, False]), val_mask=torch.tensor([False, False, True, False]),
        test_mask=torch.tensor([False, False, False, True]))


def hetero():
    h = HeteroData()
    h["paper"].x = torch.arange(6.).reshape(3, 2)
    h["paper"].y = torch.tensor([1, 0, 1])
    h["author"].num_nodes = 2
    h["author", "writes", "paper"].edge_index = torch.tensor([[0, 0, 1], [0, 1, 2]])
    h["paper", "cites", "paper"].edge_index = torch.tensor([[0, 2], [1, 0]])
    return h


def strided():
    """A graph of four nodes, no tensor of which is contiguous, or alone in its storage."""
    both = torch.tensor([1, 0, 1, 0, 3, 1])
    return {
        "x": (torch.arange(12).reshape(3, 4) % 5 == 0).t(), "y": both[:4], "train_idx": both[4:],
        "edge_index": torch.arange(8).reshape(4, 2).remainder(4).t().flip(0)[:, 1:], "edge_weight": torch.tensor([2.5]).expand(3)}


for p in 2, 3, 4, 5:
    torch.save(everything(True), OUT + f"all.zip.p{p}.pt", pickle_protocol=p)
    torch.save(everything(False), OUT + f"all.legacy.p{p}.pt", pickle_protocol=p, _use_new_zipfile_serialization=False)
torch.save(graph(), OUT + "data.pt")
torch.save(graph(), OUT + "data.legacy.pt", _use_new_zipfile_serialization=False)
torch.save((graph().to_dict(), None, Data), OUT + "processed.pt")  # as an InMemoryDataset keeps one graph
torch.save(strided(), OUT + "strided.pt")
torch.save(hetero(), OUT + "hetero.pt", pickle_protocol=4)
torch.jit.script(torch.nn.Linear(1, 1)).save(OUT + "script.pt")
torch.serialization.set_crc32_options(False)
torch.save({"x": torch.arange(3)}, OUT + "nocrc.pt")
