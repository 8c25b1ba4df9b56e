"""Maps a sealed dataset. store/FORMAT.md of gnnstore describes the files."""

import json
import os
import struct
import subprocess

import numpy as np

from .binary import Error, binary, call

PAGE = 4096
VERSIONS = {2: 1, 3: 2}  # of datasets, with the version of their sections
ELEMS = {
    "u8": (1, "u1"),
    "f16": (2, "<f2"),
    "f32": (3, "<f4"),
    "i32": (4, "<i4"),
    "u32": (5, "<u4"),
    "i64": (6, "<i8"),
    "u64": (7, "<u8"),
    "f64": (8, "<f8"),
}  # the number in a header, and the name in NumPy


class Dataset:
    """A sealed dataset: nodes by type, relations by SRC__REL__DST, and streams by name.

    verify=True has the binary check all checksums first, once. A map reads without them: with
    verify=False only headers and sizes are checked.
    """

    def __init__(self, path, verify=True):
        self.path = os.path.abspath(os.fspath(path))
        self._maps = {}
        m = self.manifest = self._read_manifest()
        self.name, self.version, self.seal = m.get("name"), m["version"], m.get("seal")
        if verify:
            self._verify()
        try:
            self._build(m)
        except (KeyError, TypeError, ValueError, AttributeError) as err:
            raise Error(
                f"{self.path}: manifest.json: it was edited or damaged ({type(err).__name__}: {err}); "
                "restore it from a copy, or ingest again"
            ) from None

    def _verify(self):
        try:
            call("verify", "--json", "--", self.path)
        except Error as err:
            try:
                problem = json.loads(err.output)["problems"][0]
            except (ValueError, LookupError):
                raise err from None
            raise Error(problem, err.code) from None

    def _build(self, m):
        self.nodes = {t["name"]: Nodes(self, t) for t in m["node_types"] or ()}
        self.relations = {}
        at = {}  # the first list, edge and held-out edge of the next relation that shares sections
        shared = {(s["src"], s["dst"]): s for s in m.get("shared", ())}
        for r in m["relations"] or ():
            ends = r["src"], r["dst"]
            place = at.setdefault(ends, {"lists": 0, "edges": 0, "valid": 0, "test": 0})
            key = f"{r['src']}__{r['name']}__{r['dst']}"
            self.relations[key] = Relation(
                self, key, r, shared[ends] if "lists" in r else None, dict(place)
            )
            if "lists" in r:
                place["lists"] += r["lists"]
                place["edges"] += r["edges"]
                for part in ("valid", "test"):
                    place[part] += r["edge_split"][part]["edges"] if "edge_split" in r else 0
        self.streams = {s["name"]: Stream(self, s) for s in m.get("streams", ())}
        for t in m["tables"] or ():
            owner = (
                self.nodes[t["node_type"]]
                if "node_type" in t
                else self.relations[t["relation"]] if "relation" in t else self.streams[t["stream"]]
            )
            owner.tables[t["name"]] = Table(self, t)
        for label in m["labels"] or ():
            self.nodes[label["node_type"]].labels[label["name"]] = Label(self, label)
        for split in m["splits"] or ():
            self.nodes[split["node_type"]].splits[split["name"]] = Split(self, split)

    def _read_manifest(self):
        if not os.path.exists(self.path):
            raise Error(f"{self.path}: no such dataset")
        if os.path.exists(os.path.join(self.path, "part-0.gnn")):
            raise Error(
                f"{self.path}: it holds parts of a dataset, and only a whole one can be mapped: give the "
                "dataset that was divided"
            )
        file = os.path.join(self.path, "manifest.json")
        if os.path.exists(file) and not os.path.isfile(file):
            raise Error(f"{file}: it is not a plain file")
        try:
            with open(file, "rb") as f:
                m = json.loads(f.read())
        except (FileNotFoundError, NotADirectoryError):
            raise Error(
                f"{self.path}: it is no dataset, which is a directory with manifest.json"
            ) from None
        except OSError as err:
            raise Error(f"{file}: {err.strerror}") from None
        except (ValueError, RecursionError) as err:
            raise Error(
                f"{file}: not a manifest: {err}; restore it from a copy, or ingest again"
            ) from None
        if not isinstance(m, dict) or m.get("format") != "gnnstore":
            raise Error(f"{file}: not a manifest: its format is not gnnstore")
        if m.get("version") not in list(VERSIONS):
            raise Error(
                f"{file}: format version {m.get('version')}: this package reads "
                f"{' and '.join(map(str, VERSIONS))}; use the gnnstore that wrote it, or a newer package"
            )
        if m.get("part") is not None:
            raise Error(
                f"{self.path}: it is a part of a dataset, and only a whole one can be mapped: give the "
                "dataset that was divided"
            )
        return m

    def __repr__(self):
        return f"Dataset({self.path!r}: {', '.join(f'{n.count:,} {k}' for k, n in self.nodes.items())})"

    def __reduce__(self):  # a worker of a loader maps the files again
        return Dataset, (self.path, False)

    def _map(self, spec, *keys, flat=True):
        """Maps a section as rows × columns, or its only column. Strides leave padding out.

        The manifest describes the section at these keys of spec.
        """
        path = "/".join(map(str, keys))
        try:
            for key in keys:
                spec = spec[key]
            path = spec["path"]
            if path not in self._maps:
                self._maps[path] = self._open(spec)
            return self._maps[path][:, 0] if flat else self._maps[path]
        except (LookupError, TypeError, AttributeError, ValueError, struct.error) as err:
            raise Error(
                f"{self.path}: {path}: it cannot be mapped ({type(err).__name__}: {err}); "
                "run gnnstore verify"
            ) from None

    def _open(self, file):
        path, rows, cols, stride = file["path"], file["rows"], file["cols"], file["stride"]
        full = os.path.join(self.path, path)
        bad = f"{self.path}: {path}: %s; restore it from a copy, or ingest again"
        if os.path.isabs(path) or os.path.realpath(full) != os.path.join(
            os.path.realpath(self.path), path
        ):
            raise Error(f"{self.path}: {path!r} does not stay inside the dataset")
        if os.path.exists(full) and not os.path.isfile(full):
            raise Error(bad % "it is not a plain file")
        try:
            with open(full, "rb") as f:
                header, size = f.read(PAGE), os.fstat(f.fileno()).st_size
        except OSError as err:
            raise Error(bad % err.strerror) from None
        code, dtype = ELEMS[file["elem"]]
        dtype = np.dtype(dtype)
        if size != file["bytes"] or size < PAGE + rows * stride:
            raise Error(bad % f"it has {size} bytes, and the manifest says {file['bytes']}")
        name = path.encode()
        want = struct.pack(
            "<8sIIQQQQI",
            b"GNNSTORE",
            VERSIONS[self.version],
            code,
            rows,
            cols,
            stride,
            file["first"],
            len(name),
        )
        if not header.startswith(want + name + b"\0"):
            raise Error(
                bad % "its header is not as in the manifest: it was damaged, swapped or renamed"
            )
        if stride % dtype.itemsize or stride < cols * dtype.itemsize:
            raise Error(
                bad % f"a stride of {stride} bytes does not fit {cols} columns of {file['elem']}"
            )
        if rows == 0 or cols == 0:  # nothing can be mapped
            return np.empty((rows, cols), dtype)
        return np.memmap(full, dtype, "r", PAGE, (rows, stride // dtype.itemsize))[:, :cols]

    def to_pyg(self, dtype="float32"):
        """Returns a FeatureStore and a GraphStore for PyTorch Geometric's NeighborLoader.

        Rows are read from the maps when a batch asks for them, as dtype. Neighbours are copied,
        since PyTorch Geometric wants them as int64. The first table of a node type is called x, and
        its first label y; others keep their names. All relations are there, reverses too.
        """
        from .pyg import stores

        return stores(self, dtype)


class Nodes:
    """A node type: nodes 0 to count - 1 as stored, and tables, labels and splits by name."""

    def __init__(self, ds, spec):
        self._ds, self._spec = ds, spec
        self.name, self.count, self.has_names = spec["name"], spec["count"], "names" in spec
        self.tables, self.labels, self.splits = {}, {}, {}

    @property
    def original(self):
        """Your id of each stored node. If ids are texts, its row in the source instead."""
        return self._ds._map(self._spec, "original")

    @property
    def order(self):
        """Stored nodes by ascending original id."""
        return self._ds._map(self._spec, "order")

    def ids(self, stored):
        """Returns your ids of stored nodes: an array of int64, or a list of texts."""
        stored = np.asarray(stored)
        if stored.size and not (0 <= stored.min() and stored.max() < self.count):
            raise Error(f"node type {self.name}: stored nodes are 0 to {self.count - 1}")
        if not self.has_names:
            return self.original[stored]
        wanted = set(stored.tolist())
        found = {v: text for v, text in self.each_id() if v in wanted}
        return [found[v] for v in stored.tolist()]

    def find(self, ids):
        """Returns the stored nodes with these ids of yours: numbers, or texts."""
        if self.has_names:
            wanted = set(ids)
            found = {text: v for v, text in self.each_id() if text in wanted}
            missing = next((i for i in ids if i not in found), None)
            if missing is None:
                return np.array([found[i] for i in ids], np.int64)
            raise Error(f"node type {self.name} has no node {missing!r}")
        ids = np.asarray(ids, np.int64)
        low, high = np.zeros(ids.shape, np.int64), np.full(ids.shape, self.count)
        while (low < high).any():  # a binary search of all at once copies neither map
            middle = np.minimum((low + high) // 2, self.count - 1)
            less = (self.original[self.order[middle]] < ids) & (low < high)
            low, high = np.where(less, middle + 1, low), np.where(
                less, high, np.minimum(high, middle)
            )
        stored = (
            self.order[np.minimum(low, self.count - 1)].astype(np.int64) if self.count else low - 1
        )
        known = self.original[stored] == ids if self.count else np.zeros(ids.shape, bool)
        if not known.all():
            raise Error(f"node type {self.name} has no node {ids[~known].flat[0]}")
        return stored

    def each_id(self):
        """Yields (stored node, your id) in stored order. The binary reads texts from its tables."""
        args = [binary(), "inspect", f"--ids={self.name}", "--", self._ds.path]
        with subprocess.Popen(
            args,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        ) as process:
            for line in process.stdout:
                node = json.loads(line)
                yield node["stored"], node["id"]
            message = process.stderr.read().strip()
        if process.returncode:
            raise Error(message.removeprefix("gnnstore: "), process.returncode)


class Relation:
    """A kind of edge. Node v has the in-neighbours neighbors[offsets[v]:offsets[v + 1]]."""

    def __init__(self, ds, key, spec, shared, place):
        self._ds, self._spec, self._shared, self._place, self._offsets = (
            ds,
            spec,
            shared,
            place,
            None,
        )
        self.key, self.src, self.name, self.dst = key, spec["src"], spec["name"], spec["dst"]
        self.edges, self.symmetric, self.reverse_of = (
            spec["edges"],
            spec["symmetric"],
            spec.get("reverse_of"),
        )
        self.tables = {}  # row i belongs to the edges whose column id is i
        self.edge_split = spec["edge_split"]["name"] if "edge_split" in spec else None

    @property
    def offsets(self):
        """Where the in-neighbours of each node begin, and where the last ones end.

        It is a map, or is made in memory for relations that share sections, since these list only
        nodes with in-neighbours.
        """
        if self._shared is None:
            return self._ds._map(self._spec, "offsets")
        if self._offsets is None:
            first, lists = self._place["lists"], self._spec["lists"]
            starts = self._ds._map(self._shared, "starts")[first : first + lists + 1]
            degrees = np.zeros(self._ds.nodes[self.dst].count, np.uint64)
            degrees[self._ds._map(self._shared, "nodes")[first : first + lists]] = np.diff(starts)
            self._offsets = np.concatenate(
                [np.zeros(1, np.uint64), np.cumsum(degrees, dtype=np.uint64)]
            )
        return self._offsets

    @property
    def neighbors(self):
        """The source of each edge, by ascending destination, then source."""
        if self._shared is None:
            return self._ds._map(self._spec, "neighbors")
        first = self._place["edges"]
        return self._ds._map(self._shared, "neighbors")[first : first + self.edges]

    @property
    def columns(self):
        """The values of edges by name, in the order of neighbors."""
        return {c["name"]: self._ds._map(c, "values") for c in self._spec.get("columns", ())}

    def edge_index(self):
        """Returns sources and destinations as an array of 2 × edges int64. It is a copy."""
        degrees = np.diff(self.offsets).astype(np.int64)
        return np.stack(
            [self.neighbors.astype(np.int64), np.repeat(np.arange(len(degrees)), degrees)]
        )

    def held_out(self, part):
        """Returns arrays of the held-out edges of a part, valid or test.

        src and dst are always there. src_negatives, dst_negatives, pool_src, pool_dst and columns
        are there if the dataset has them.
        """
        if self.edge_split is None:
            raise Error(f"relation {self.key} holds out no edges: ingest with --edge-split")
        if part not in ("valid", "test"):
            raise Error(f"part {part!r} of held-out edges: there are valid and test")
        spec = self._spec["edge_split"][part]
        if self._shared is not None:
            first = self._place[part]
            return {
                end: self._ds._map(self._shared, part, end)[first : first + spec["edges"]]
                for end in ("src", "dst")
            }
        arrays = {
            k: self._ds._map(spec, k, flat=k not in ("src_negatives", "dst_negatives"))
            for k in ("src", "dst", "src_negatives", "dst_negatives", "pool_src", "pool_dst")
            if k in spec
        }
        if "columns" in spec:
            arrays["columns"] = {c["name"]: self._ds._map(c, "values") for c in spec["columns"]}
        return arrays


class Stream:
    """Events in the order of time. split counts events to train on, valid and test."""

    def __init__(self, ds, spec):
        self._ds, self._spec, self.tables = ds, spec, {}
        self.name, self.src, self.dst = spec["name"], spec["src"], spec["dst"]
        self.events, self.split = spec["events"], spec["split"]

    @property
    def arrays(self):
        """Maps by name: sources, destinations, times, offsets, near, and labels if it has any."""
        names = ("sources", "destinations", "times", "labels", "offsets", "near")
        return {k: self._ds._map(self._spec, k, flat=k != "near") for k in names if k in self._spec}


class Table:
    """Rows of dim numbers, in shards that follow each other."""

    def __init__(self, ds, spec):
        self._ds, self._files = ds, spec["shards"]
        self.name, self.dim, self.elem = spec["name"], spec["dim"], spec["elem"]
        self.shape = sum(f["rows"] for f in self._files), self.dim

    @property
    def shards(self):
        """A map of each shard. All but the last have equally many rows."""
        return [self._ds._map(self._files, i, flat=False) for i in range(len(self._files))]

    def rows(self, index=slice(None)):
        """Returns a copy of these rows: a slice, or an array of numbers or booleans."""
        count = self.shape[0]
        if isinstance(index, slice):
            index = np.arange(*index.indices(count))
        index = np.asarray(index)
        index = np.flatnonzero(index) if index.dtype == bool else index.astype(np.int64)
        out = np.empty((*index.shape, self.dim), ELEMS[self.elem][1])
        if index.size == 0:
            return out
        if index.min() < 0 or index.max() >= count:
            raise IndexError(f"table {self.name}: rows are 0 to {count - 1}")
        shard, row = np.divmod(index, self._files[0]["rows"])
        for i in np.unique(shard):
            out[shard == i] = self._ds._map(self._files, i, flat=False)[row[shard == i]]
        return out


class Label:
    """A label of nodes: values has an entry for each node.

    An entry is a class (-1: missing). If numbers is true, it is a number (NaN: missing). If multi is
    true, it is a row of 0, 1 and 255 (missing), with a column for each class.
    """

    def __init__(self, ds, spec):
        self._ds, self._spec = ds, spec
        self.name, self.classes, self.multi = spec["name"], spec["classes"], spec["multi"]
        self.numbers, self.class_names = spec.get("numbers", False), spec.get("class_names")

    @property
    def values(self):
        return self._ds._map(self._spec, "values", flat=not self.multi)


class Split:
    """Stored nodes to train on, to validate on and to test on, ascending."""

    def __init__(self, ds, spec):
        self._ds, self._spec, self.name = ds, spec, spec["name"]

    train = property(lambda self: self._ds._map(self._spec, "train"))
    valid = property(lambda self: self._ds._map(self._spec, "valid"))
    test = property(lambda self: self._ds._map(self._spec, "test"))
