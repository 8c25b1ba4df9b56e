"""What a NumPy and SciPy user does with an edge_index and a feature matrix that fit in memory: a CSC matrix of the graph,
saved, and the features as float16. Prints one JSON object: seconds, peak_rss_bytes, written_bytes."""

import json
import os
import resource
import sys
import time

import numpy as np
import scipy.sparse as sp

edges, features, out = sys.argv[1:]
start = time.time()
os.mkdir(out)
index = np.load(edges)
feat = np.load(features, mmap_mode="r")
n = feat.shape[0]
graph = sp.coo_matrix((np.ones(index.shape[1], dtype=bool), (index[0].astype(np.int32), index[1].astype(np.int32))), shape=(n, n)).tocsc()
graph.sort_indices()
np.save(os.path.join(out, "indptr.npy"), graph.indptr)
np.save(os.path.join(out, "indices.npy"), graph.indices)
np.save(os.path.join(out, "feat.npy"), np.asarray(feat, dtype=np.float16))
os.sync()
written = sum(os.path.getsize(os.path.join(out, f)) for f in os.listdir(out))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"route": "numpy %s, scipy %s" % (np.__version__, sp.__name__ and __import__("scipy").__version__),
                  "seconds": time.time() - start, "peak_rss_bytes": peak, "written_bytes": written}))
