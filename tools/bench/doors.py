"""Writes one graph in every format of text and pickles, and times the ingest of each.

    python tools/bench/doors.py GNNSTORE DATA FOLDER [DOOR...]

GNNSTORE is the binary, and DATA has ogbn_arxiv. FOLDER gets the files, some 2 GB, and the datasets.
The standard library is enough. It prints Markdown: a line for each format, with its bytes of input
a second over those of the first line of its table, the median of five pairs in turns. The graph is
ogbn-arxiv: 1,166,243 citations of 169,343 papers, which have 40 classes. Each paper has 16 random
features. In the knowledge graph each citation is a triple, whose relation is the year of the citing
paper. In the stream each citation is an event, in the order of those years.
"""

import array
import gzip
import json
import os
import pickle
import random
import shutil
import sys
import time
import types
import zipfile
from statistics import median

GNNSTORE, DATA, FOLDER = sys.argv[1:4]
WANTED = sys.argv[4:]
COLUMNS = 16
ROUNDS = 5


def read(name):
    with gzip.open(f"{DATA}/ogbn_arxiv/raw/{name}.csv.gz", "rt") as f:
        return [tuple(map(int, line.split(","))) for line in f]


def load():
    global EDGES, LABELS, YEARS, ROWS, EVENTS
    EDGES = read("edge")
    LABELS = [y for y, in read("node-label")]
    YEARS = [y for y, in read("node_year")]
    random.seed(1)
    ROWS = [[random.randrange(1000) / 1000 for _ in range(COLUMNS)] for _ in LABELS]
    EVENTS = sorted(EDGES, key=lambda e: YEARS[e[0]])


NAMES = [f"x{i}" for i in range(COLUMNS)]


def write(path, parts):
    with (gzip.open if path.endswith(".gz") else open)(path, "wt") as f:
        f.writelines(parts)


def table(path, header, rows):
    write(path, [",".join(header) + "\n"] + [",".join(map(str, row)) + "\n" for row in rows])


def nodes(more=()):
    return ([v, LABELS[v], *ROWS[v], *more] for v in range(len(LABELS)))


def csv(d):
    table(d + "e.csv", ["src", "dst"], EDGES)
    table(d + "n.csv", ["id", "label", *NAMES], nodes())
    return ["csv", d + "e.csv", "--nodes", d + "n.csv"]


def mtx(d, ending=""):
    table(d + "n.csv", ["id", "label", *NAMES], ([v[0] + 1, *v[1:]] for v in nodes()))
    head = f"%%MatrixMarket matrix coordinate pattern general\n{len(LABELS)} {len(LABELS)} {len(EDGES)}\n"
    write(d + "g.mtx" + ending, [head] + [f"{a + 1} {b + 1}\n" for a, b in EDGES])
    return ["mtx", d + "g.mtx" + ending, "--nodes", d + "n.csv"]


def mtx_gz(d):
    return mtx(d, ".gz")


def graphml(d):
    keys = [("label", "int"), *((x, "double") for x in NAMES)]
    text = ['<?xml version="1.0" encoding="utf-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n']
    text += [f'<key id="{k}" for="node" attr.name="{k}" attr.type="{t}" />\n' for k, t in keys]
    text.append('<graph edgedefault="directed">\n')
    for v, *values in nodes():
        text.append(f'<node id="{v}">' + "".join(f'<data key="{k}">{x}</data>' for (k, _), x in zip(keys, values)) + "</node>\n")
    text += [f'<edge source="{a}" target="{b}" />\n' for a, b in EDGES]
    write(d + "g.graphml", text + ["</graph>\n</graphml>\n"])
    return ["graphml", d + "g.graphml"]


def nodelink(d):
    with open(d + "g.json", "w") as f:
        json.dump({"directed": True, "multigraph": False, "graph": {},
                   "nodes": [dict(zip(["id", "label", *NAMES], row)) for row in nodes()],
                   "links": [{"source": a, "target": b} for a, b in EDGES]}, f)
    return ["nodelink", d + "g.json"]


def inferred(d):
    """A folder of tables, whose schema --infer writes."""
    with open(d + "schema.yaml", "w") as f:
        if os.spawnv(os.P_WAIT, "/bin/sh", ["sh", "-c", f'exec "{GNNSTORE}" ingest table --infer "{d}" > "{d}schema.yaml"']):
            raise SystemExit("--infer failed")
    return ["table", d + "schema.yaml"]


def neo4j(d):
    table(d + "papers.csv", ["paper:ID(Paper)", "label:int", *(x + ":float" for x in NAMES), ":LABEL"], nodes(["Paper"]))
    table(d + "cites.csv", [":START_ID(Paper)", ":END_ID(Paper)", ":TYPE"], ((a, b, "CITES") for a, b in EDGES))
    return inferred(d)


def apoc(d):
    table(d + "all.csv", ["_id", "_labels", "label", *NAMES, "_start", "_end", "_type"],
          [[v[0], ":Paper", *v[1:], "", "", ""] for v in nodes()] + [["", "", "", *[""] * COLUMNS, a, b, "CITES"] for a, b in EDGES])
    return inferred(d)


def neptune(d):
    table(d + "papers.csv", ["~id", "label:int", *(x + ":double" for x in NAMES), "~label"], nodes(["paper"]))
    table(d + "cites.csv", ["~id", "~from", "~to", "~label"], ((f"e{i}", a, b, "cites") for i, (a, b) in enumerate(EDGES)))
    return inferred(d)


def graphstorm(d):
    table(d + "papers.csv", ["id", "label", *NAMES], nodes())
    table(d + "cites.csv", ["src", "dst"], EDGES)
    kind = {"name": "csv"}
    with open(d + "config.json", "w") as f:
        json.dump({"version": "gconstruct-v0.1",
                   "nodes": [{"node_type": "paper", "node_id_col": "id", "files": "papers.csv", "format": kind,
                              "features": [{"feature_col": x} for x in NAMES],
                              "labels": [{"label_col": "label", "task_type": "classification", "split_pct": [0.8, 0.1, 0.1]}]}],
                   "edges": [{"relation": ["paper", "cites", "paper"], "source_id_col": "src", "dest_id_col": "dst", "files": "cites.csv", "format": kind}]}, f)
    return inferred(d)


def placed(thing, module, name):
    """Gives a class or a function the module and the name that a pickle has for it."""
    parts = module.split(".")
    for i in range(len(parts)):
        sys.modules.setdefault(".".join(parts[:i + 1]), types.ModuleType(parts[i]))
    thing.__module__, thing.__qualname__, thing.__name__ = module, name, name
    setattr(sys.modules[module], name, thing)
    return thing


def kind(module, name):
    return placed(type(name, (), {}), module, name)


STORAGES = {"f": kind("torch", "FloatStorage"), "q": kind("torch", "LongStorage")}
rebuild = placed(lambda *a: None, "torch._utils", "_rebuild_tensor_v2")


class Tensor:
    def __init__(self, code, shape, values):
        self.storage, self.shape = array.array(code, values), shape

    def __reduce__(self):
        return rebuild, (self.storage, 0, self.shape, (self.shape[1], 1) if len(self.shape) == 2 else (1,), False, {})


def torch_save(path, value):
    storages = []

    class Pickler(pickle._Pickler):
        def persistent_id(self, o):
            if isinstance(o, array.array):
                storages.append(o)
                return "storage", STORAGES[o.typecode], str(len(storages) - 1), "cpu", len(o)

    with zipfile.ZipFile(path, "w") as z:
        with z.open("g/data.pkl", "w") as f:
            Pickler(f, 2).dump(value)
        z.writestr("g/byteorder", "little")
        for i, s in enumerate(storages):
            z.writestr(f"g/data/{i}", s.tobytes())
        z.writestr("g/version", "3\n")


def made(cls, **state):
    o = cls()
    o.__dict__.update(state)
    return o


Global = kind("torch_geometric.data.storage", "GlobalStorage")
Data = kind("torch_geometric.data.data", "Data")
Temporal = kind("torch_geometric.data.temporal", "TemporalData")


def flat():
    return [x for row in ROWS for x in row]


def pt(d):
    ends = Tensor("q", (2, len(EDGES)), [a for a, _ in EDGES] + [b for _, b in EDGES])
    torch_save(d + "data.pt", made(Data, _store=made(Global, _mapping={
        "x": Tensor("f", (len(ROWS), COLUMNS), flat()), "y": Tensor("q", (len(LABELS),), LABELS), "edge_index": ends})))
    return ["pt", d + "data.pt"]


def npz(d):
    def npy(kind, shape, values):
        head = f"{{'descr': '<{kind}', 'fortran_order': False, 'shape': {shape}, }}"
        head += " " * (-(len(head) + 11) % 64) + "\n"
        return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + values.tobytes()

    with zipfile.ZipFile(d + "g.npz", "w") as z:
        z.writestr("edge_index.npy", npy("i8", (2, len(EDGES)), array.array("q", [a for a, _ in EDGES] + [b for _, b in EDGES])))
        z.writestr("x.npy", npy("f4", (len(ROWS), COLUMNS), array.array("f", flat())))
        z.writestr("y.npy", npy("i8", (len(LABELS),), array.array("q", LABELS)))
    return ["npz", d + "g.npz"]


def tsv(d):
    write(d + "train.tsv", (f"p{a}\tcites_in_{YEARS[a]}\tp{b}\n" for a, b in EDGES))
    return ["triples", d + "train.tsv"]


def nt(d):
    write(d + "g.nt", (f"<http://a.org/p{a}> <http://a.org/cites_in_{YEARS[a]}> <http://a.org/p{b}> .\n" for a, b in EDGES))
    return ["triples", d + "g.nt"]


def nq(d):
    write(d + "g.nq", (f"<http://a.org/p{a}> <http://a.org/cites_in_{YEARS[a]}> <http://a.org/p{b}> <http://a.org/g> .\n" for a, b in EDGES))
    return ["triples", d + "g.nq"]


def ttl(d):
    text, last = ["@prefix a: <http://a.org/> .\n"], None
    for a, b in sorted(EDGES):
        text.append(f" , a:p{b}" if a == last else f"{'' if last is None else ' .'}\na:p{a} a:cites_in_{YEARS[a]} a:p{b}")
        last = a
    write(d + "g.ttl", text + [" .\n"])
    return ["triples", d + "g.ttl"]


def events(d):
    table(d + "e.csv", ["src", "dst", "time"], ((a, b, YEARS[a]) for a, b in EVENTS))
    return ["events", d + "e.csv"]


def tkgl(d):
    table(d + "tkgl-arxiv_edgelist.csv", ["timestamp", "head", "tail", "relation_type"], ((YEARS[a], a, b, YEARS[a] % 40) for a, b in EVENTS))
    return ["tgb", d + "tkgl-arxiv_edgelist.csv"]


def thgl(d):
    table(d + "thgl-arxiv_edgelist.csv", ["timestamp", "head", "tail", "relation_type"], ((YEARS[a], a, b, YEARS[a] % 40) for a, b in EVENTS))
    table(d + "thgl-arxiv_nodetype.csv", ["node_id", "type"], ((v, y % 4) for v, y in enumerate(LABELS)))
    return ["tgb", d + "thgl-arxiv_edgelist.csv", "--missing-features", "zeros"]


def temporal(d):
    torch_save(d + "stream.pt", made(Temporal, _store=made(Global, _mapping={
        "src": Tensor("q", (len(EVENTS),), [a for a, _ in EVENTS]), "dst": Tensor("q", (len(EVENTS),), [b for _, b in EVENTS]),
        "t": Tensor("q", (len(EVENTS),), [YEARS[a] for a, _ in EVENTS])})))
    return ["pt", d + "stream.pt"]


TABLES = {
    "A graph with labels and features": [
        ("csv, two tables", csv), ("MatrixMarket and a table of nodes (SuiteSparse)", mtx), ("the same, .mtx.gz", mtx_gz),
        ("GraphML (NetworkX)", graphml), ("node-link JSON (NetworkX, D3)", nodelink), ("neo4j-admin's csv", neo4j),
        ("APOC's one csv", apoc), ("Neptune's csv", neptune), ("GraphStorm's configuration and csv", graphstorm),
        (".npz with edge_index, x, y", npz), (".pt of PyTorch Geometric's Data", pt)],
    "A knowledge graph": [("tab-separated triples", tsv), ("N-Triples", nt), ("N-Quads", nq), ("Turtle", ttl)],
    "A stream of events": [("csv", events), ("TGB's tkgl-*", tkgl), ("TGB's thgl-*, with types of nodes", thgl),
                           (".pt of PyTorch Geometric's TemporalData", temporal)],
}


def written(door, d):
    """Calls door in a new process, since a process starts with the peak memory of its parent."""
    pid = os.fork()
    if pid == 0:
        try:
            load()
            with open(FOLDER + "/args", "w") as f:
                json.dump(door(d), f)
        except BaseException as e:
            print(e, file=sys.stderr)
            os._exit(1)
        os._exit(0)
    if os.waitpid(pid, 0)[1]:
        raise SystemExit(1)
    with open(FOLDER + "/args") as f:
        return json.load(f)


def run(args):
    """Runs the binary, and returns its seconds, its peak MiB and its standard output."""
    out = FOLDER + "/stdout"
    start = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
        os.dup2(os.open(FOLDER + "/stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        os.execv(GNNSTORE, [GNNSTORE, *args])
    _, status, used = os.wait4(pid, 0)
    seconds = time.perf_counter() - start
    if status:
        raise SystemExit(f"{args}: {open(FOLDER + '/stderr').read()}")
    return seconds, used.ru_maxrss / 1024, open(out).read()


def ingest(args, out):
    """Ingests into out, and returns the seconds and the peak MiB."""
    shutil.rmtree(out, ignore_errors=True)
    return run(["ingest", *args[:2], out, *args[2:], "--memory", "256MiB"])[:2]


def summary(dataset):
    d = json.loads(run(["inspect", dataset, "--json"])[2])
    edges = d["edges"] or sum(s["events"] for s in d.get("streams") or [])
    said = [f"{sum(t['count'] for t in d['node_types']):,} nodes", f"{edges:,} {'edges' if d['edges'] else 'events'}"]
    if len(d["relations"] or []) > 1:
        said.append(f"{len(d['relations'])} relations")
    said += [f"{t['dim']} columns" for t in d["tables"] or []] + [f"{d['classes']} classes"] * ((d.get("classes") or 0) > 0)
    return ", ".join(said)


def main():
    for title, doors in TABLES.items():
        first = None
        for name, door in doors:
            if WANTED and door.__name__ not in WANTED:
                continue
            if first is None:
                print(f"\n**{title}**\n\n| format | MB of files | s, median | MB/s beside the first line | peak MiB | what the dataset has |\n|---|---|---|---|---|---|")
            d = f"{FOLDER}/{door.__name__}/"
            shutil.rmtree(d, ignore_errors=True)
            os.makedirs(d)
            args = written(door, d)
            size = sum(os.path.getsize(d + f) for f in os.listdir(d) if not f.endswith((".yaml", "config.json")))
            first = first or (args, size)
            out, times, ratios, peak = FOLDER + "/" + door.__name__ + ".gnn", [], [], 0
            for _ in range(ROUNDS):
                beside, _ = ingest(first[0], FOLDER + "/first.gnn")
                seconds, mib = ingest(args, out)
                times.append(seconds)
                ratios.append(size / seconds / (first[1] / beside))
                peak = max(peak, mib)
            print(f"| {name} | {size / 1e6:.1f} | {median(times):.2f} | {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) | {peak:.0f} | {summary(out)} |", flush=True)


main()
