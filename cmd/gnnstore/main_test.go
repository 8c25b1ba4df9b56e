package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/kerneltest"
)

func TestMain(m *testing.M) {
	if os.Getenv(testDevice) != "" && !slices.Contains(kernels.Devices(), kernels.CUDADevice) {
		kernels.Register(kernels.CUDADevice, func(o kernels.Options) (kernels.Backend, error) {
			if o.Products == kernels.TF32 {
				return nil, fmt.Errorf("%w: it is pretended", kernels.ErrNoTF32)
			}
			return pretended{kerneltest.Remote(kernels.NewCPU(kernels.CPUOptions{}))}, nil
		})
	}
	testscript.Main(m, map[string]func(){"gnnstore": main})
}

// testDevice is an environment variable. If it is set, the commands have a device cuda, which the
// CPU pretends to be.
const testDevice = "GNNSTORE_TEST_DEVICE"

// pretended is a backend that has the name of a GPU.
type pretended struct{ *kerneltest.RemoteBackend }

func (pretended) Name() string   { return kernels.CUDADevice }
func (pretended) Device() string { return "pretended GPU" }

// TestScripts runs the commands as a user does; the scripts in testdata/script are the tests. Each
// finds in its directory a graph of 60 nodes in three communities: tiny.npz, and much the same one
// in the folders planetoid and graphsaint; and the fixtures of formats that other programs write,
// in hgb, graphbolt and torch.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("TMPDIR", e.WorkDir)
			errs := []error{
				os.WriteFile(filepath.Join(e.WorkDir, "tiny.npz"), tinyNPZ(nil), 0o666),
				writeGraphSAINT(filepath.Join(e.WorkDir, "graphsaint")),
			}
			for _, format := range []string{"planetoid", "hgb", "graphbolt", "torch"} {
				fixtures := os.DirFS(filepath.Join("..", "..", "ingest", format, "testdata"))
				errs = append(errs, os.CopyFS(filepath.Join(e.WorkDir, format), fixtures))
			}
			return errors.Join(errs...)
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "root":
				return os.Geteuid() == 0, nil
			case "bf16": // in which products are faster than in f32
				_, err := kernels.ParseSet("auto", kernels.BF16)
				return err == nil, nil
			case "amx":
				return slices.Contains(kernels.SetsOf(kernels.BF16), kernels.AMX), nil
			case "cuda": // a GPU's backend
				return slices.Contains(kernels.Devices(), kernels.CUDADevice), nil
			}
			return false, fmt.Errorf("unknown condition %s", cond)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			// npz FILE KEY… writes tiny.npz again without the keys, or with KEY=nan a broken value.
			"npz": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), tinyNPZ(args[1:]), 0o666))
			},
			// cut FILE BYTES keeps the first bytes of a file; a negative number cuts as many off.
			"cut": func(ts *testscript.TestScript, _ bool, args []string) {
				b, err := os.ReadFile(ts.MkAbs(args[0]))
				ts.Check(err)
				var n int
				_, err = fmt.Sscan(args[1], &n)
				ts.Check(err)
				if n < 0 {
					n += len(b)
				}
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), b[:n], 0o666))
			},
			// flip FILE BYTE changes one byte; a negative number counts from the end.
			"flip": func(ts *testscript.TestScript, _ bool, args []string) {
				b, err := os.ReadFile(ts.MkAbs(args[0]))
				ts.Check(err)
				var n int
				_, err = fmt.Sscan(args[1], &n)
				ts.Check(err)
				if n < 0 {
					n += len(b)
				}
				b[n] ^= 0x40
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), b, 0o666))
			},
			// awaitlive RUN waits until the training in a run directory has done a step, and can be
			// asked.
			"awaitlive": func(ts *testscript.TestScript, _ bool, args []string) {
				for range 1000 {
					if r, err := (statsOptions{run: ts.MkAbs(args[0])}).look(context.Background()); err == nil && r.Live != nil && r.Live.Updates > 0 {
						return
					}
					time.Sleep(20 * time.Millisecond)
				}
				ts.Fatalf("no training answers in %s", args[0])
			},
			// submission DIR WHOLE.csv holds what the challenge takes against the predictions of
			// all its test nodes.
			"submission": func(ts *testscript.TestScript, _ bool, args []string) {
				whole, err := os.ReadFile(ts.MkAbs(args[1]))
				ts.Check(err)
				classes := map[int]int16{}
				for _, line := range strings.Split(strings.TrimSpace(string(whole)), "\n")[1:] {
					var id, class int
					_, err := fmt.Sscanf(line, "%d,%d", &id, &class)
					ts.Check(err)
					classes[id] = int16(class)
				}
				want := map[string][]int16{}
				for i, id := range slices.Sorted(maps.Keys(classes)) {
					part := "test-challenge"
					if i%5 < 3 {
						part = "test-dev"
					}
					want[part], want["test-whole"] = append(want[part], classes[id]), append(want["test-whole"], classes[id])
				}
				for mode, list := range want {
					z, err := zip.OpenReader(filepath.Join(ts.MkAbs(args[0]), "y_pred_mag240m_"+mode+".npz"))
					ts.Check(err)
					f, err := z.Open("y_pred.npy")
					ts.Check(err)
					b, err := io.ReadAll(f)
					ts.Check(err)
					data := binary.LittleEndian.AppendUint16(nil, 0)[:0]
					for _, c := range list {
						data = binary.LittleEndian.AppendUint16(data, uint16(c))
					}
					if !bytes.Contains(b, fmt.Appendf(nil, "'descr': '<i2', 'fortran_order': False, 'shape': (%d,)", len(list))) || !bytes.HasSuffix(b, data) {
						ts.Fatalf("%s is not %v", mode, list)
					}
					ts.Check(errors.Join(f.Close(), z.Close()))
				}
			},
			// samelines A B compares files of lines that come in any order.
			"samelines": func(ts *testscript.TestScript, _ bool, args []string) {
				a, b := strings.Split(ts.ReadFile(args[0]), "\n"), strings.Split(ts.ReadFile(args[1]), "\n")
				slices.Sort(a)
				slices.Sort(b)
				if !slices.Equal(a, b) {
					ts.Fatalf("%s and %s have other lines", args[0], args[1])
				}
			},
			// sameresult A.json B.json compares losses and weights.
			"nearlosses": nearLosses,
			"sameresult": func(ts *testscript.TestScript, neg bool, args []string) {
				same := bytes.Equal(resultOf(ts, args[0]), resultOf(ts, args[1]))
				if same == neg {
					ts.Fatalf("same result: %v", same)
				}
			},
			// sameseal A.json B.json compares the seals of two datasets, as ingest --json or
			// inspect --json says them.
			"sameseal": func(ts *testscript.TestScript, neg bool, args []string) {
				a, b := sealOf(ts, args[0]), sealOf(ts, args[1])
				if (a == b) == neg {
					ts.Fatalf("seals %s and %s", a, b)
				}
			},
		},
	})
}

// tinyNPZ is a graph in the layout of Shchur et al.: a ring inside each community, a feature that
// names the community.
func tinyNPZ(changes []string) []byte {
	const nodes, classes = 60, 3
	var indptr, indices, attrPtr, attrIndices []int32
	var data, attrData []float32
	var labels []int64
	indptr, attrPtr = append(indptr, 0), append(attrPtr, 0)
	for v := range nodes {
		for _, step := range []int{classes, 2 * classes, 5 * classes} {
			indices, data = append(indices, int32((v+step)%nodes)), append(data, 1)
		}
		indptr = append(indptr, int32(len(indices)))
		attrIndices, attrData = append(attrIndices, int32(v%classes), int32(3+v%5)), append(attrData, 1, 1)
		attrPtr = append(attrPtr, int32(len(attrIndices)))
		labels = append(labels, int64(v%classes))
	}
	entries := map[string][]byte{
		"adj_data": savedNpy("<f4", data), "adj_indices": savedNpy("<i4", indices), "adj_indptr": savedNpy("<i4", indptr), "adj_shape": savedNpy("<i8", []int64{nodes, nodes}),
		"attr_data": savedNpy("<f4", attrData), "attr_indices": savedNpy("<i4", attrIndices), "attr_indptr": savedNpy("<i4", attrPtr), "attr_shape": savedNpy("<i8", []int64{nodes, 8}),
		"labels": savedNpy("<i8", labels),
	}
	for _, c := range changes {
		switch c {
		case "attr_data=nan":
			entries["attr_data"] = bytes.Replace(entries["attr_data"], []byte{0, 0, 0x80, 0x3f}, []byte{0, 0, 0xc0, 0x7f}, 1)
		case "adj_indices=far":
			indices[7] = nodes
			entries["adj_indices"] = savedNpy("<i4", indices)
		case "labels=short":
			entries["labels"] = savedNpy("<i8", labels[:nodes-1])
		default:
			delete(entries, c)
		}
	}
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for _, key := range []string{"adj_data", "adj_indices", "adj_indptr", "adj_shape", "attr_data", "attr_indices", "attr_indptr", "attr_shape", "labels"} {
		if b, ok := entries[key]; ok {
			w, err := z.Create(key + ".npy")
			if err == nil {
				_, err = w.Write(b)
			}
			if err != nil {
				panic(err) // a buffer does not fail
			}
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return buf.Bytes()
}

// writeGraphSAINT writes the graph of tinyNPZ, and its communities as features, in GraphSAINT's
// layout.
func writeGraphSAINT(dir string) error {
	const nodes, classes = 60, 3
	indptr, indices := []int32{0}, []int32{}
	var features []float64
	classOf, role := map[string]int{}, map[string][]int{}
	for v := range nodes {
		for _, step := range []int{classes, 2 * classes, 5 * classes} {
			indices = append(indices, int32((v+step)%nodes))
		}
		indptr = append(indptr, int32(len(indices)))
		for c := range classes {
			noise := float64((v*7+c*3)%5) / 8 // without it, the features would tell the label
			features = append(features, map[bool]float64{true: 1}[c == v%classes]+noise)
		}
		classOf[fmt.Sprint(v)] = v % classes
		part := []string{"tr", "va", "te"}[v/20]
		role[part] = append(role[part], v)
	}
	var adjacency bytes.Buffer
	z := zip.NewWriter(&adjacency)
	var errs []error
	for key, body := range map[string][]byte{"indptr": savedNpy("<i4", indptr), "indices": savedNpy("<i4", indices), "shape": savedNpy("<i8", []int64{nodes, nodes})} {
		w, err := z.Create(key + ".npy")
		if err == nil {
			_, err = w.Write(body)
		}
		errs = append(errs, err)
	}
	classMap, err := json.Marshal(classOf)
	errs = append(errs, z.Close(), err, os.Mkdir(dir, 0o777))
	roles, err := json.Marshal(role)
	errs = append(errs, err)
	for name, body := range map[string][]byte{"adj_full.npz": adjacency.Bytes(), "adj_train.npz": nil,
		"feats.npy": savedNpy("<f8", features, nodes, classes), "class_map.json": classMap, "role.json": roles} {
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), body, 0o666))
	}
	return errors.Join(errs...)
}

// savedNpy is v as NumPy saves an array of that shape, of one dimension if none is given.
func savedNpy[T any](descr string, v []T, shape ...int) []byte {
	if shape == nil {
		shape = []int{len(v)}
	}
	dims := ""
	for _, d := range shape {
		dims += fmt.Sprint(d, ",")
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, dims)
	for (10+len(header)+1)%64 != 0 {
		header += " "
	}
	header += "\n"
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	b, err := binary.Append(append(b, header...), binary.LittleEndian, v)
	if err != nil {
		panic(err)
	}
	return b
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestUnwrittenOutput: what could not be printed is no success.
func TestUnwrittenOutput(t *testing.T) {
	var stderr bytes.Buffer
	require.Equal(t, 1, execute([]string{"version"}, fullDisk{}, &stderr))
	require.Equal(t, "gnnstore: write the output: no space left on device\n", stderr.String())
}

func TestNumbers(t *testing.T) {
	for want, got := range map[string]string{
		"0": count(0), "999": count(999), "1,000": count(1000), "-1,234,567": count(-1234567), "12,345": count(12345),
		"1.5 KiB": size(1536), "3.1 M": number(3.1e6), "12 k": number(12e3), "7": number(7),
	} {
		require.Equal(t, want, got)
	}
}

// TestOldVersionIsSaid: a dataset without page checksums is read, and that it is not checked is
// said in a line.
func TestOldVersionIsSaid(t *testing.T) {
	var stdout, stderr bytes.Buffer
	require.Zero(t, execute([]string{"inspect", "../../store/testdata/v2.gnn"}, &stdout, &stderr))
	require.Contains(t, stdout.String(), "user__likes__user")
	require.Regexp(t, `^note: .*v2.gnn is of format version 2, which has no checksum for each page: what is read is not checked; [^\n]*\n$`, stderr.String())
}
