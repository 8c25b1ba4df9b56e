package arrays

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/npy"
)

// named is the flag of an array that is named, "" without one; edges aside.
func (o *Options) named() string {
	for _, n := range []struct{ flag, name string }{
		{"{array_features}", o.Features}, {labelsFlag, o.Labels}, {"{array_weights}", o.Weights},
		{"{array_train}", o.Train}, {"{array_valid}", o.Valid}, {"{array_test}", o.Test},
		{splitFlag, strings.TrimPrefix(o.Split, NoSplit)},
	} {
		if n.name != "" {
			return n.flag
		}
	}
	return ""
}

// Layout is the layout of an array of edges, for the shape (2, 2), which fits both.
type Layout string

const (
	Rows  Layout = "rows"  // (2, E): sources, then destinations
	Pairs Layout = "pairs" // (E, 2): a source and a destination each
)

// Options name what the usual names do not find. A name is the key in an archive, or a file of the
// folder, with or without its suffix.
type Options struct {
	Edges    string // the array of edges; "A,B" for two arrays, of sources and of destinations
	Features string
	Labels   string // with ":value" behind it where they are numbers to learn, and no classes
	Weights  string // of edges, or their features
	// Train, Valid and Test are masks of all nodes or lists of some.
	Train, Valid, Test string
	// Split names the array with the part of each node: train, valid and test, or 0, 1 and 2.
	// NoSplit takes none.
	Split string

	Nodes      int64  // their number; default the arrays' own, or one more than the largest id
	Layout     Layout // default by shape
	RowsAre    string // what a row of a CSR matrix is: "src", the default, or "dst"
	MultiLabel bool   // labels of one 1 a row are several classes a node as well
	MaskSplit  int    // which of several splits, from 0, when masks have two dimensions
	Raw        []Raw  // the files that have no header
	Memory     int64  // of the ingest, for the pickles in .pt files; default 1 GiB
}

// Raw is the form of a file without a header, row-major.
type Raw struct {
	File string // its name in the folder
	npy.Header
}

// ParseRaw reads "FILE:DTYPE:SHAPE", as in node_feat.npy:f4:100000,1024. A first dimension of -1 is
// what the file's size makes it.
func ParseRaw(text string) (Raw, error) {
	wrong := func(why string) (Raw, error) {
		return Raw{}, fmt.Errorf("{raw_array} %s: %s; say FILE:DTYPE:SHAPE, as in node_feat.npy:f4:100000,1024", text, why)
	}
	rest, shape, ok := cutLast(text)
	file, dtype, ok2 := cutLast(rest)
	if !ok || !ok2 || file == "" {
		return wrong("it has not three parts")
	}
	var dims []int64
	for i, d := range strings.Split(shape, ",") {
		n, err := strconv.ParseInt(d, 10, 64)
		if err != nil || n < 0 && (n != -1 || i > 0) {
			return wrong(fmt.Sprintf("%q is no dimension", d))
		}
		dims = append(dims, n)
	}
	known := dims
	if dims[0] == -1 {
		known = append([]int64{1}, dims[1:]...)
	}
	brain := dtype == "bf16" || dtype == "bfloat16"
	if brain {
		dtype = "f2"
	}
	h, err := npy.NewHeader(descr(dtype), false, known)
	if err != nil {
		return wrong(err.Error())
	}
	if h.Shape = dims; brain {
		h.Descr, h.Type.Kind = "bfloat16", npy.BFloat
	}
	return Raw{File: file, Header: h}, nil
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// descr takes NumPy's long names as well.
func descr(dtype string) string {
	long := map[string]string{
		"float16": "f2", "float32": "f4", "float64": "f8", "int8": "i1", "int16": "i2", "int32": "i4", "int64": "i8",
		"uint8": "u1", "uint16": "u2", "uint32": "u4", "uint64": "u8", "bool": "b1",
	}
	if dtype = cmp.Or(long[dtype], dtype); !strings.ContainsAny(dtype[:min(1, len(dtype))], "<>|=") {
		dtype = "<" + dtype
	}
	return dtype
}

// Validate reports every problem, a line each.
func (o *Options) Validate() error {
	var errs []error
	if o.Nodes < 0 {
		errs = append(errs, fmt.Errorf("{node_count} %d: a number of nodes is not negative", o.Nodes))
	}
	if o.MaskSplit < 0 {
		errs = append(errs, fmt.Errorf("{mask_split} %d: splits count from 0", o.MaskSplit))
	}
	if o.Layout != "" && o.Layout != Rows && o.Layout != Pairs {
		errs = append(errs, fmt.Errorf("{edge_layout} %q: edges are laid out in rows, (2, E), or in pairs, (E, 2)", o.Layout))
	}
	if o.RowsAre != "" && o.RowsAre != "src" && o.RowsAre != "dst" {
		errs = append(errs, fmt.Errorf("{csr_rows} %q: a row is that of a src or of a dst", o.RowsAre))
	}
	return errors.Join(errs...)
}
