"""Makes testdata/preprocessed as GraphBolt's preprocessing does of testdata/typed, with PyTorch alone.

GraphBolt's graph is a Python class around a TorchScript class; both pickle to their names and the state that
graphbolt/src/fused_csc_sampling_graph.cc gives (DGL 2.1). Stand-ins of the same names pickle to the same.
"""
import os, sys, types
import numpy as np, torch

name = "dgl.graphbolt.impl.fused_csc_sampling_graph"
for i in range(1, name.count(".") + 2):
    part = ".".join(name.split(".")[:i])
    sys.modules[part] = types.ModuleType(part)

class FusedCSCSamplingGraph:
    pass

class ScriptObject:
    def __getstate__(self):
        return (self.state, "__torch__.torch.classes.graphbolt.FusedCSCSamplingGraph")

FusedCSCSamplingGraph.__module__, FusedCSCSamplingGraph.__qualname__ = name, "FusedCSCSamplingGraph"
ScriptObject.__module__, ScriptObject.__qualname__ = "torch._C", "ScriptObject"
sys.modules[name].FusedCSCSamplingGraph = FusedCSCSamplingGraph
torch._C.ScriptObject = ScriptObject

# item 0..2 -> 0..2, user 0..1 -> 3..4; item:bought_by:user is relation 0, user:buys:item 1.
edges = sorted([(2, 3 + 0, 0, 0), (0, 3 + 1, 0, 1), (1, 3 + 1, 0, 2), (3 + 0, 2, 1, 0), (3 + 1, 0, 1, 1), (3 + 1, 1, 1, 2)], key=lambda e: e[1])
indptr = torch.tensor([0] + [sum(e[1] <= v for e in edges) for v in range(5)], dtype=torch.int32)
graph, script = FusedCSCSamplingGraph(), ScriptObject()
script.state = {
    "independent_tensors": {
        "version_number": torch.tensor([6199]),
        "indptr": indptr,
        "indices": torch.tensor([e[0] for e in edges], dtype=torch.int32),
        "node_type_offset": torch.tensor([0, 3, 5], dtype=torch.int32),
        "type_per_edge": torch.tensor([e[2] for e in edges], dtype=torch.uint8),
    },
    "node_type_to_id": {"item": torch.tensor(0), "user": torch.tensor(1)},
    "edge_type_to_id": {"item:bought_by:user": torch.tensor(0), "user:buys:item": torch.tensor(1)},
    "edge_attributes": {"_ORIGINAL_EDGE_ID": torch.tensor([e[3] for e in edges], dtype=torch.int32)},
}
graph._c_csc_graph = script
os.makedirs("preprocessed/preprocessed", exist_ok=True)
torch.save(graph, "preprocessed/preprocessed/fused_csc_sampling_graph.pt")
np.save("preprocessed/preprocessed/item_feat.npy", np.arange(6, dtype=np.float16).reshape(3, 2))
torch.save(torch.tensor([2, 0]), "typed/items.pt")
