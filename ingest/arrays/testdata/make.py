"""Writes the files of this folder: graphs as PyTorch Geometric, PyTorch, SciPy and NumPy save them.

    python -m venv env
    env/bin/pip install numpy==2.4.6 scipy==1.17.1
    env/bin/python ingest/arrays/testdata/make.py ingest/arrays/testdata

It needs no PyTorch: classes with the names of PyTorch's are pickled as torch.save would, in both of its
containers. The files are committed; run this only to change them.
"""

import collections
import io
import pickle
import struct
import sys
import types
import zipfile

import numpy as np
import scipy.sparse as sp

OUT = sys.argv[1] + "/"


def place(thing, module, name):
    """Gives a class or a function the module and the name that the pickle will have for it."""
    parts = module.split(".")
    for i in range(len(parts)):
        sys.modules.setdefault(".".join(parts[:i + 1]), types.ModuleType(parts[i]))
    thing.__module__, thing.__qualname__, thing.__name__ = module, name, name
    setattr(sys.modules[module], name, thing)
    return thing


def function(module, name):
    return place(lambda *a: None, module, name)


def kind(module, name):
    return place(type(name, (), {}), module, name)


STORAGES = {t: kind("torch", n + "Storage") for t, n in
            {"f4": "Float", "f8": "Double", "i8": "Long", "i4": "Int", "b1": "Bool"}.items()}
rebuild = function("torch._utils", "_rebuild_tensor_v2")
rebuild_sparse = function("torch._utils", "_rebuild_sparse_tensor")
get_layout = function("torch.serialization", "_get_layout")
size = function("torch", "Size")


class Storage:
    def __init__(self, values):
        self.values = values


class Call:
    """A value that the pickle makes by calling f."""

    def __init__(self, f, *args):
        self.f, self.args = f, args

    def __reduce__(self):
        return self.f, self.args


class Tensor:
    def __init__(self, values):
        a = np.ascontiguousarray(values)
        self.storage, self.shape = Storage(a.ravel()), a.shape
        self.strides = tuple(s // a.itemsize for s in a.strides)

    def __reduce__(self):
        return rebuild, (self.storage, 0, self.shape, self.strides, False, collections.OrderedDict())


def sparse(layout, *parts):
    return Call(rebuild_sparse, Call(get_layout, "torch.sparse_" + layout), parts)


def pickled(value):
    storages, out = [], io.BytesIO()

    class Pickler(pickle._Pickler):
        def persistent_id(self, obj):
            if not isinstance(obj, Storage):
                return None
            if obj not in storages:
                storages.append(obj)
            kept = STORAGES[obj.values.dtype.str[1:]]
            return "storage", kept, str(storages.index(obj)), "cpu", obj.values.size

    Pickler(out, 2).dump(value)
    return out.getvalue(), [s.values for s in storages]


def save(name, value, big=False):
    data, storages = pickled(value)
    with zipfile.ZipFile(OUT + name, "w") as z:
        def put(member, b):
            z.writestr(zipfile.ZipInfo("graph/" + member), b)
        put("data.pkl", data)
        put("byteorder", b"big" if big else b"little")
        for i, s in enumerate(storages):
            put(f"data/{i}", s.astype(s.dtype.newbyteorder(">")).tobytes() if big else s.tobytes())
        put("version", b"3\n")


def save_legacy(name, value):
    data, storages = pickled(value)
    with open(OUT + name, "wb") as f:
        pickle.dump(0x1950a86a20f9469cfc6c, f, 2)
        pickle.dump(1001, f, 2)
        pickle.dump({"protocol_version": 1001, "little_endian": True}, f, 2)
        f.write(data)
        pickle.dump([str(i) for i in range(len(storages))], f, 2)
        for s in storages:
            f.write(struct.pack("<q", s.size) + s.tobytes())


def made(cls, **state):
    o = cls()
    o.__dict__.update(state)
    return o


# The graph of all files but streams: edges 0→1, 0→2, 2→0, 3→3; node 4 has none.
SRC, DST = np.array([0, 0, 2, 3]), np.array([1, 2, 0, 3])
X = np.array([[0, 1.5], [0, 0], [2, 0], [0, -1], [0, 0]], dtype="f4")
Y = np.array([1, 0, 1, 0, 2])
WEIGHT = np.array([0.5, 2, 1, 4], dtype="f4")
TRAIN, VAL, TEST = (np.isin(np.arange(5), part) for part in ([0, 1], [2], [3, 4]))

AttrType = kind("torch_geometric.data.storage", "AttrType")
Data = kind("torch_geometric.data.data", "Data")
HeteroData = kind("torch_geometric.data.hetero_data", "HeteroData")
TemporalData = kind("torch_geometric.data.temporal", "TemporalData")
GlobalStorage = kind("torch_geometric.data.storage", "GlobalStorage")
EdgeIndex = kind("torch_geometric.edge_index", "EdgeIndex")
SparseTensor = kind("torch_sparse.tensor", "SparseTensor")
SparseStorage = kind("torch_sparse.storage", "SparseStorage")


def rest():
    return {"x": Tensor(X), "y": Tensor(Y), "train_mask": Tensor(TRAIN), "val_mask": Tensor(VAL), "test_mask": Tensor(TEST)}


def data(**fields):
    """Makes a Data that has cached its sets of attributes, as it does when num_nodes is asked for."""
    cached = collections.defaultdict(set)
    for name in "edge", "node":
        cached[Call(AttrType, name)] = {"x"}
    return made(Data, _store=made(GlobalStorage, _mapping=fields, _cached_attr=cached))


# Matrices of the graph, with values and without; adj_t is transposed, as PyTorch Geometric's is.
adj = sp.csr_matrix((WEIGHT, (SRC, DST)), shape=(5, 5))
coo, csc = adj.tocoo(), adj.tocsc()
shape = Call(size, (5, 5))
t = adj.T.tocsr()
save("matrices.pt", {
    **rest(),
    "coo": sparse("coo", Tensor(np.array([coo.row, coo.col], dtype="i8")), Tensor(WEIGHT), shape, True),
    "csr": sparse("csr", Tensor(adj.indptr.astype("i8")), Tensor(adj.indices.astype("i8")), Tensor(WEIGHT), shape),
    "csc": sparse("csc", Tensor(csc.indptr.astype("i4")), Tensor(csc.indices.astype("i4")), Tensor(csc.data.astype("f8")), shape),
    "adj_t": made(SparseTensor, storage=made(
        SparseStorage, _row=None, _rowptr=Tensor(t.indptr.astype("i8")), _col=Tensor(t.indices.astype("i8")), _value=Tensor(t.data),
        _sparse_sizes=(5, 5), _rowcount=None, _colptr=None, _colcount=None, _csr2csc=None, _csc2csr=None)),
    "rows": made(SparseTensor, storage=made(
        SparseStorage, _row=Tensor(SRC), _rowptr=None, _col=Tensor(DST), _value=None, _sparse_sizes=(5, 5), _rowcount=None,
        _colptr=None, _colcount=None, _csr2csc=None, _csc2csr=None)),
    "scipy_csr": adj, "scipy_csc": csc, "scipy_coo": coo, "scipy_array": sp.csr_array(adj),
    "bsr": sparse("bsr", Tensor(np.array([0, 1])), Tensor(np.array([0])), Tensor(np.ones((1, 5, 5), "f4")), shape),
    "wide": sparse("coo", Tensor(np.array([[0], [7]])), Tensor(np.array([1], "f4")), Call(size, (5, 8)), True),
    "x_coo": sparse("coo", Tensor(np.array([[3, 0, 2, 2], [1, 1, 0, 0]])), Tensor(np.array([-1, 1.5, 0.5, 1.5], "f4")), Call(size, (5, 2)), False),
    "x_csr": sparse("csr", *(Tensor(v) for v in (lambda m: (m.indptr.astype("i8"), m.indices.astype("i8"), m.data))(sp.csr_matrix(X))), Call(size, (5, 2))),
    "x_csc": sp.csc_matrix(X), "x_scipy": sp.csr_matrix(X),
})
ones = sparse("csr", Tensor(t.indptr.astype("i8")), Tensor(t.indices.astype("i8")), Tensor(np.ones(4, "f4")), shape)
save("adj_t.pt", data(**rest(), adj_t=ones))
save_legacy("adj_t.legacy.pt", data(**rest(), adj_t=ones))
save("adj_t.big.pt", data(**rest(), adj_t=ones), big=True)
save("alone.pt", sparse("coo", Tensor(np.array([SRC, DST])), Tensor(np.ones(4, "f4")), shape, True))
wrapped = Call(function("torch._tensor", "_rebuild_from_type_v2"), function("torch._utils", "_rebuild_wrapper_subclass"), EdgeIndex, (),
               {"_data": Tensor(np.array([SRC, DST])), "_sparse_size": (5, 5), "_sort_order": None})
save("edgeindex.pt", data(**rest(), edge_index=wrapped))
save("xsparse.pt", data(**{**rest(), "x": sparse("coo", Tensor(np.array([[3, 0, 2], [1, 1, 0]])), Tensor(np.array([-1, 1.5, 2], "f4")), Call(size, (5, 2)), False)},
                        edge_index=Tensor(np.array([SRC, DST]))))

# A HeteroData, two graphs and one, as datasets save them: the values, the bounds of each graph, the class.
user, item = {"x": Tensor(np.arange(6, dtype="f4").reshape(3, 2))}, {"x": Tensor(np.arange(4, dtype="f4").reshape(2, 2)), "y": Tensor(np.array([1, 0]))}
buys = {"edge_index": Tensor(np.array([[0, 1, 2, 2], [1, 0, 0, 1]])), "edge_attr": Tensor(WEIGHT)}
save("hetero_processed.pt", ({"_global_store": {}, "user": user, "item": item, ("user", "buys", "item"): buys}, None, HeteroData))
for name, rows, edges in ("several.pt", [0, 2, 5], [0, 1, 4]), ("one.pt", [0, 5], [0, 4]):
    bounds = {"x": Tensor(np.array(rows)), "edge_index": Tensor(np.array(edges))}
    save(name, ({**rest(), "edge_index": Tensor(np.array([SRC, DST]))}, bounds, Data))

# A stream of six events among five nodes.
events = {"src": Tensor(np.array([0, 1, 0, 2, 1, 0])), "dst": Tensor(np.array([3, 4, 4, 3, 3, 4])), "t": Tensor(np.array([5, 7, 7, 9, 12, 20])),
          "msg": Tensor(np.arange(12, dtype="f4").reshape(6, 2)), "y": Tensor(np.array([0, 0, 1, 0, -1, 1]))}
save("temporal.pt", made(TemporalData, _store=made(GlobalStorage, _mapping=events)))
save("temporal_processed.pt", (events, None, TemporalData))
save_legacy("temporal.legacy.pt", made(TemporalData, _store=made(GlobalStorage, _mapping=events)))

# Archives with arrays of Python objects.
ends, few = np.array([SRC, DST]), np.array(["b", "a", "b", None, "c"], dtype=object)
np.savez_compressed(OUT + "objects.npz", edge_index=ends, x=np.array(list(X) + [None], dtype=object)[:5], y=few)
np.savez_compressed(OUT + "numbers.npz", edge_index=ends, x=np.array([[1, 2.5], [True, 0], [3, 4], [5, 6], [7, None]], dtype=object),
                    y=np.array([1, 0, None, 2, 1], dtype=object))
np.savez_compressed(OUT + "ragged.npz", edge_index=ends, x=np.array([[1], [1, 2], [], [3], [4]], dtype=object), y=np.array([1, "a", 2, 3, 4], dtype=object))
np.savez_compressed(OUT + "sparse.npz", adj=adj, x=sp.csr_matrix(X), y=Y)
np.savez_compressed(OUT + "dense.npz", adj=(adj.toarray() != 0).astype("f4"), x=X, y=Y)
np.savez_compressed(OUT + "weighted.npz", adjacency=adj.toarray(), x=X, y=Y)
