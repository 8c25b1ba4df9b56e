package data

import (
	"math"

	"github.com/gnnstore/gnnstore/store"
)

// Numbers appends the number of each node to dst. A node without a number is an error. The label
// must be of numbers.
func (d *Data) Numbers(dst []float32, nodes []uint32) ([]float32, error) {
	for _, v := range nodes {
		x := d.Labels.Number(v)
		if x-x != 0 {
			return nil, d.corrupt("node %d has the number %v", v, x)
		}
		dst = append(dst, x)
	}
	return dst, nil
}

// Targets appends the multi-label targets of nodes to dst, a row of 0 and 1 for each, NaN where one
// is not known, and counts the known ones. Its results are the input that
// kernels.Backend.SigmoidCrossEntropy and metric.Multi take. The label has several Classes a node.
func (d *Data) Targets(dst []float32, nodes []uint32) (_ []float32, known int, err error) {
	for _, v := range nodes {
		for c, bit := range d.Labels.Bits(v) {
			switch bit {
			case 0, 1:
				dst = append(dst, float32(bit))
				known++
			case store.MissingBit:
				dst = append(dst, float32(math.NaN()))
			default:
				return nil, 0, d.corrupt("node %d has %d for class %d; want 0, 1 or %d", v, bit, c, store.MissingBit)
			}
		}
	}
	return dst, known, nil
}
