package arrays

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/archive"
	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/ingest/pickle"
	"github.com/gnnstore/gnnstore/ingest/torch"
)

// bag is the arrays there are by key, wherever they are. Headers are read when asked for.
type bag struct {
	path    string
	keys    []string
	numbers map[string]int64 // by key: num_nodes, in a .pt
	open    func(key string) (*array, error)
	opened  map[string]*array
	used    map[string]bool
	closers []io.Closer
	files   []string
}

func newBag(path string) *bag {
	return &bag{path: path, numbers: map[string]int64{}, opened: map[string]*array{}, used: map[string]bool{}}
}

func (b *bag) close() error {
	var errs []error
	for _, c := range b.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

func (b *bag) has(key string) bool {
	for _, k := range b.keys {
		if k == key {
			return true
		}
	}
	return false
}

// get opens an array.
func (b *bag) get(key string) (*array, error) {
	b.used[key] = true
	if a := b.opened[key]; a != nil {
		return a, nil
	}
	a, err := b.open(key)
	if err != nil {
		return nil, err
	}
	b.opened[key] = a
	return a, nil
}

// file opens an ordinary file, which the bag closes.
func (b *bag) file(path string) (*os.File, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a file", path)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	b.closers = append(b.closers, f)
	b.files = append(b.files, path)
	return f, info.Size(), nil
}

// raw is the declared form of a file, nil when it has a header.
func (o *Options) raw(path string) *Raw {
	for i := range o.Raw {
		if o.Raw[i].File == filepath.Base(path) || o.Raw[i].File == path {
			return &o.Raw[i]
		}
	}
	return nil
}

// openNPY opens one array in a file of its own.
func (b *bag) openNPY(path string, o *Options) (*array, error) {
	f, size, err := b.file(path)
	if err != nil {
		return nil, err
	}
	a := &array{key: stem(path), name: path}
	var h npy.Header
	at, raw := int64(0), o.raw(path)
	if raw != nil {
		if bytes.HasPrefix(archive.Head(f), []byte("\x93NUMPY")) {
			return nil, fmt.Errorf("%s: it has a header, which says what it is; leave --raw %s away", path, raw.File)
		}
		h = raw.Header
		if row := (&npy.Header{Type: h.Type, Shape: append([]int64{1}, h.Shape[1:]...)}).Bytes(); h.Shape[0] == -1 && row > 0 {
			h.Shape = append([]int64{size / row}, h.Shape[1:]...)
		}
	} else {
		c := &counter{r: io.NewSectionReader(f, 0, size)}
		if h, err = npy.ReadHeader(c); err != nil {
			return nil, fmt.Errorf("%s: %w", path, noHeader(f, size, path, err))
		}
		at = c.n
	}
	if have := size - at; have < h.Bytes() {
		return nil, fmt.Errorf("%s: %s takes %d bytes of data, and the file has %d; fetch it again%s", path, h.String(), h.Bytes(), have, shapeHint(raw))
	} else if have > h.Bytes() {
		return nil, fmt.Errorf("%s: %d bytes follow the data of %s; is it damaged?%s", path, have-h.Bytes(), h.String(), shapeHint(raw))
	}
	a.turned = h.Fortran && len(h.Shape) > 1
	a.View, err = npy.NewView(h, nil, 0, npy.FileStorage(io.NewSectionReader(f, at, size-at)), size-at)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

func shapeHint(raw *Raw) string {
	if raw == nil {
		return ""
	}
	return ", or is --raw right?"
}

// noHeader says what to do about a file that is no npy array.
func noHeader(f io.ReaderAt, size int64, path string, err error) error {
	const kind = "an npy array"
	if bytes.HasPrefix(archive.Head(f), []byte("\x93NUMPY")) || errors.Is(err, npy.ErrUnsupported) {
		return err
	}
	if other := archive.Mistaken(f, size, kind); other != nil {
		return other
	}
	return fmt.Errorf("no NPY header, so it may be a headerless dump of %d bytes; say what it holds, as in --raw %s:f4:-1,128", size, filepath.Base(path))
}

type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

func stem(path string) string {
	base := filepath.Base(path)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// folderBag is the .npy files of a folder, and those that are declared raw.
func folderBag(dir string, o *Options) (*bag, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	b, paths := newBag(dir), map[string]string{}
	for _, e := range entries {
		if e.IsDir() || filepath.Ext(e.Name()) != ".npy" && o.raw(e.Name()) == nil {
			continue
		}
		key := stem(e.Name())
		if paths[key] != "" {
			return nil, fmt.Errorf("%s: %s and %s go by one name; move one away", dir, filepath.Base(paths[key]), e.Name())
		}
		paths[key] = filepath.Join(dir, e.Name())
		b.keys = append(b.keys, key)
	}
	if len(b.keys) == 0 {
		return nil, fmt.Errorf("%s: no .npy file in it; name the folder that has them, or one file", dir)
	}
	b.open = func(key string) (*array, error) { return b.openNPY(paths[key], o) }
	return b, nil
}

// npyBag is a single file: the edges.
func npyBag(path string, o *Options) (*bag, error) {
	b := newBag(path)
	b.keys = []string{"edges"}
	b.open = func(string) (*array, error) { return b.openNPY(path, o) }
	return b, nil
}

// npzBag is the arrays of an archive.
func npzBag(path string, _ *Options) (*bag, error) {
	b := newBag(path)
	f, size, err := b.file(path)
	if err != nil {
		return nil, err
	}
	if err := b.addArchive(f, size); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

// addArchive gives a bag the arrays of an archive.
func (b *bag) addArchive(r io.ReaderAt, size int64) error {
	z, err := archive.Open(b.path, r, size, "an npz archive")
	if err != nil {
		return err
	}
	for _, m := range z.Members {
		if key, ok := strings.CutSuffix(m.Name, ".npy"); ok {
			b.keys = append(b.keys, key)
		}
	}
	b.open = func(key string) (*array, error) {
		a := &array{key: key, name: b.path + ": " + key, member: z.Member(key + ".npy")}
		c := &counter{r: a.member.Stream(0, a.member.Size)}
		h, err := npy.ReadHeader(c)
		if err != nil {
			return nil, a.fail(context.Background(), err)
		}
		have := a.member.Size - c.n
		if have != h.Bytes() {
			return nil, a.fail(context.Background(), fmt.Errorf("%s takes %d bytes of data, the member has %d", h.String(), h.Bytes(), have))
		}
		a.turned = h.Fortran && len(h.Shape) > 1
		if a.View, err = npy.NewView(h, nil, 0, behind{a.member, c.n}, have); err != nil {
			return nil, a.fail(context.Background(), err)
		}
		return a, nil
	}
	return nil
}

// behind is a storage less what it begins with.
type behind struct {
	npy.Storage
	at int64
}

func (b behind) ReadAt(p []byte, off int64) (int, error) { return b.Storage.ReadAt(p, b.at+off) }
func (b behind) Stream(off, n int64) io.Reader           { return b.Storage.Stream(b.at+off, n) }

// torchBag is what torch.save wrote: a tensor, a dict of them, a graph of PyTorch Geometric, or one as its datasets keep it.
func torchBag(path string, _ *Options) (*bag, []string, error) {
	f, err := torch.Open(path)
	if err != nil {
		return nil, nil, err
	}
	b := newBag(path)
	b.closers, b.files = append(b.closers, f), append(b.files, path)
	types, err := b.addTorch(f.Value())
	if err != nil {
		b.close()
		return nil, nil, err
	}
	return b, types, nil
}

// addTorch gives a bag the arrays of a value, and the types of a HeteroData.
func (b *bag) addTorch(v any) (types []string, err error) {
	path := b.path
	values := map[string]any{}
	add := func(prefix string, d *pickle.Dict) {
		for i, k := range d.Keys {
			if key, ok := pickle.Text(k); ok {
				if _, again := values[prefix+key]; !again {
					b.keys = append(b.keys, prefix+key)
				}
				values[prefix+key] = d.Values[i]
			}
		}
	}
	if t, ok := v.(pickle.Tuple); ok && len(t) > 0 { // (data, slices, class), as an InMemoryDataset keeps them
		if len(t) > 1 && t[1] != nil {
			return nil, fmt.Errorf("%s: several graphs in one file (a data set of many); save the one to train on", path)
		}
		v = t[0]
	}
	switch d := torch.Fields(v); {
	case isArray(v):
		b.keys, values["edges"] = []string{"edges"}, v
	case d != nil && d.Get("_node_store_dict") != nil:
		if types, err = hetero(d, add); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	case d != nil:
		add("", d)
		for i, w := range d.Values { // a split in a dict of its own
			key, _ := pickle.Text(d.Keys[i])
			if inner, ok := w.(*pickle.Dict); ok && (key == "split_idx" || key == "split") {
				add(key+".", inner)
			}
		}
	default:
		return nil, fmt.Errorf("%s: it holds %s; a tensor, a dict of tensors or a Data of PyTorch Geometric is expected", path, pickle.Kind(v))
	}
	keys := b.keys
	b.keys = nil
	for _, key := range keys {
		if n, ok := values[key].(int64); ok {
			b.numbers[key] = n
		}
		if isArray(values[key]) {
			b.keys = append(b.keys, key)
		}
	}
	b.open = func(key string) (*array, error) {
		a := &array{key: key, name: path + ": " + key}
		switch v := values[key].(type) {
		case *torch.Tensor:
			a.View = v.View
		case *pickle.Array:
			a.View = v.View()
		}
		if !a.Type.Number() {
			return nil, fmt.Errorf("%s: %w %s", a.name, npy.ErrUnsupported, a.Descr)
		}
		return a, nil
	}
	return types, nil
}

func isArray(v any) bool {
	switch v.(type) {
	case *torch.Tensor, *pickle.Array:
		return true
	}
	return false
}

// hetero adds the stores of a HeteroData, each under its type and a slash, and gives the types: nodes "paper/", relations
// "author__writes__paper/".
func hetero(d *pickle.Dict, add func(prefix string, d *pickle.Dict)) ([]string, error) {
	nodes, ok := d.Get("_node_store_dict").(*pickle.Dict)
	edges, ok2 := d.Get("_edge_store_dict").(*pickle.Dict)
	if !ok || !ok2 || len(nodes.Keys)+len(edges.Keys) > 1<<16 {
		return nil, errors.New("a HeteroData without its stores; save it again")
	}
	var types []string
	for i, k := range nodes.Keys {
		name, _ := pickle.Text(k)
		fields := torch.Fields(nodes.Values[i])
		if name == "" || fields == nil || strings.Contains(name, "/") || strings.Contains(name, "__") {
			return nil, errors.New("a HeteroData with a node type that has no store, or / or __ in its name")
		}
		types = append(types, name+"/")
		add(name+"/", fields)
	}
	for i, k := range edges.Keys {
		t, _ := k.(pickle.Tuple)
		fields := torch.Fields(edges.Values[i])
		if len(t) != 3 || fields == nil {
			return nil, errors.New("a HeteroData with a relation that is no triple or has no store")
		}
		var part [3]string
		for j, p := range t {
			if part[j], _ = pickle.Text(p); part[j] == "" || strings.ContainsAny(part[j], "/") || strings.Contains(part[j], "__") {
				return nil, fmt.Errorf("a relation is called %q; rename it without / and __", part[j])
			}
		}
		types = append(types, strings.Join(part[:], "__")+"/")
		add(types[len(types)-1], fields)
	}
	return types, nil
}
