package model

import (
	"encoding/binary"
	"fmt"
	"hash"
	"math"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/checkpoint"
	"github.com/gnnstore/gnnstore/train/tape"
)

// Parameters holds the parameters of a network, on its backend. It can be a checkpoint.Part.
type Parameters struct {
	Params []*Param
	be     kernels.Backend
}

// begin gives the parameters memory and their initial values.
func (m *Parameters) begin(be kernels.Backend, seed uint64) {
	m.be = be
	for n, p := range m.Params {
		p.allocate(be, seed, uint64(n))
	}
}

// fix gives them memory as constants, which are zero until Load or Upload.
func (m *Parameters) fix(be kernels.Backend) {
	m.be = be
	for _, p := range m.Params {
		*p.Var = *tape.NewConstant(p.tensor(be))
	}
}

func (m *Parameters) free() {
	for _, p := range m.Params {
		kernels.FreeTensors(m.be, p.Value, p.Grad)
	}
}

// Download copies the parameters to the host, under their names.
func (m *Parameters) Download() []checkpoint.Tensor {
	all := make([]checkpoint.Tensor, len(m.Params))
	for i, p := range m.Params {
		data := make([]float32, p.Value.Len())
		m.be.DownloadF32(data, p.Value)
		all[i] = checkpoint.Tensor{Name: p.Name, Shape: p.Shape, Data: data}
	}
	return all
}

// Upload sets the parameters to values that Download or Find gave.
func (m *Parameters) Upload(values []checkpoint.Tensor) {
	for i, p := range m.Params {
		m.be.UploadF32(p.Value, values[i].Data)
	}
}

// Find is the tensor of each parameter, by its name behind prefix. The error names one that is
// missing or of another shape.
func (m *Parameters) Find(tensors []checkpoint.Tensor, prefix string) ([]checkpoint.Tensor, error) {
	byName := map[string]checkpoint.Tensor{}
	for _, x := range tensors {
		byName[x.Name] = x
	}
	found := make([]checkpoint.Tensor, len(m.Params))
	for i, p := range m.Params {
		x, ok := byName[prefix+p.Name]
		if !ok {
			return nil, fmt.Errorf("it has no tensor %s: it is of another model", prefix+p.Name)
		}
		if !slices.Equal(x.Shape, p.Shape) {
			return nil, fmt.Errorf("tensor %s is %v and the model's is %v: it is of another model", x.Name, x.Shape, p.Shape)
		}
		x.Name = p.Name
		found[i] = x
	}
	return found, nil
}

// Save adds the parameters.
func (m *Parameters) Save(s *checkpoint.State) error {
	s.Tensors = append(s.Tensors, m.Download()...)
	return nil
}

// Check wants a tensor for each parameter.
func (m *Parameters) Check(s *checkpoint.State) error {
	_, err := m.Find(s.Tensors, "")
	return err
}

// Load sets the parameters to those in s.
func (m *Parameters) Load(s *checkpoint.State) error {
	values, err := m.Find(s.Tensors, "")
	if err == nil {
		m.Upload(values)
	}
	return err
}

// Hash is XXH3-64 over the parameters: see AddTo.
func (m *Parameters) Hash() string {
	h := xxh3.New()
	m.AddTo(h)
	return fmt.Sprintf("%016x", h.Sum64())
}

// AddTo adds the parameters to a hash, one after the other, as little-endian float32.
func (m *Parameters) AddTo(h hash.Hash) {
	for _, p := range m.Download() {
		b := make([]byte, 0, 4*len(p.Data))
		for _, x := range p.Data {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
		h.Write(b) // a hash never fails
	}
}
