"""Loads the weights of a finished run into PyTorch Geometric by name, and compares what it says of some nodes.

    go run ./tools/refnums -run runs/cs -out cs.out
    env/bin/python tools/refnums/roundtrip.py runs/cs/best.safetensors cs.out

The network is built from the file alone: its kind from the metadata, its sizes from the shapes. It sees the whole graph;
its rows for the predicted nodes are compared with the logits that the Go program wrote. Where nothing is normalised,
the weights of GraphSAGE and GCN are loaded into torch_geometric.nn.GraphSAGE and GCN, too. It exits 1 when a logit differs
by more than 1e-4 of the largest, or a prediction whose two largest logits are further apart than that.
"""

import sys

import numpy as np
import torch
import torch_geometric.nn as pyg
from safetensors import safe_open

LIMIT = 1e-4


class Net(torch.nn.Module):
    def __init__(self, kind, weights):
        super().__init__()
        self.kind = kind
        layers = 1 + max(int(name.split(".")[1]) for name in weights)
        self.convs, self.lins, self.norms = torch.nn.ModuleList(), torch.nn.ModuleList(), torch.nn.ModuleList()
        for l in range(layers):
            if kind == "sage":
                o, i = weights[f"convs.{l}.lin_l.weight"].shape
                self.convs.append(pyg.SAGEConv(i, o))
            elif kind == "gcn":
                o, i = weights[f"convs.{l}.lin.weight"].shape
                self.convs.append(pyg.GCNConv(i, o))
            elif kind == "gat":
                _, i = weights[f"convs.{l}.lin.weight"].shape
                _, heads, width = weights[f"convs.{l}.att_src"].shape
                self.convs.append(pyg.GATConv(i, width, heads=heads))
            else:
                o, i = weights[f"lins.{l}.weight"].shape
                self.lins.append(torch.nn.Linear(i, o))
            if f"norms.{l}.weight" in weights:
                self.norms.append(torch.nn.LayerNorm(len(weights[f"norms.{l}.weight"])))

    def forward(self, x, edges):
        layers = len(self.convs) + len(self.lins)
        for l in range(layers):
            x = self.lins[l](x) if self.kind == "mlp" else self.convs[l](x, edges)
            if l < layers - 1:
                if len(self.norms) > 0:
                    x = self.norms[l](x)
                x = torch.nn.functional.elu(x) if self.kind == "gat" else torch.relu(x)
        return x


def compare(name, net, weights, x, edges, nodes, ours):
    net.load_state_dict(weights, strict=True)
    net = net.double().eval()
    with torch.no_grad():
        theirs = net(torch.tensor(x, dtype=torch.float64), torch.tensor(edges))[torch.tensor(nodes)].numpy()
    off, size = np.abs(theirs - ours).max(), np.abs(theirs).max()
    top = np.sort(theirs, axis=1)
    close = top[:, -1] - top[:, -2] <= LIMIT * size if theirs.shape[1] > 1 else np.zeros(len(nodes), bool)
    differ = (theirs.argmax(1) != ours.argmax(1)) & ~close
    print(f"{name}: {len(nodes)} nodes, {theirs.shape[1]} classes: logits differ by at most {off:.2e}, "
          f"the largest is {size:.4g}; {differ.sum()} predictions differ")
    return off <= LIMIT * size and not differ.any()


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: roundtrip.py WEIGHTS.safetensors DIRECTORY")
    with safe_open(sys.argv[1], "pt") as f:
        kind = f.metadata()["gnnstore.model"]
        if kind not in ("sage", "gcn", "gat", "mlp"):
            sys.exit(f"{sys.argv[1]}: it is of {kind}, and this program knows networks of one type of node: sage, gcn, gat and mlp")
        weights = {name: f.get_tensor(name) for name in f.keys() if not name.startswith("adam.")}
    x, edges, nodes, ours = (np.load(f"{sys.argv[2]}/{name}.npy") for name in ("features", "edges", "nodes", "logits"))
    net = Net(kind, weights)
    ok = compare(kind, net, weights, x, edges, nodes, ours)
    if len(net.norms) == 0 and kind in ("sage", "gcn") and len(net.convs) > 1:
        ready = {"sage": pyg.GraphSAGE, "gcn": pyg.GCN}[kind]
        hidden = net.convs[0].out_channels
        ready = ready(x.shape[1], hidden, len(net.convs), net.convs[-1].out_channels)
        ok = compare(f"torch_geometric.nn.{type(ready).__name__}", ready, weights, x, edges, nodes, ours) and ok
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
