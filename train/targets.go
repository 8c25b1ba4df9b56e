package train

import (
	"math"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// targets appends the multi-label targets of nodes to dst, a row of 0 and 1 for each, NaN where one is not known, and
// counts those that are known: what kernels.Backend.SigmoidCrossEntropy and metric.Multi take. The label has several
// classes a node.
func (d *data) targets(dst []float32, nodes []uint32) (_ []float32, known int, err error) {
	for _, v := range nodes {
		for c, bit := range d.labels.Bits(v) {
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

// rowWeights appends to dst the weight of each row's class, 0 for kernels.NoLabel, and adds them up in order: what
// tape.WeightedCrossEntropy takes, and what its mean divides by. class has a weight for every class.
func rowWeights(dst []float32, labels []uint32, class []float32) (_ []float32, sum float64) {
	for _, label := range labels {
		w := float32(0)
		if label != kernels.NoLabel {
			w = class[label]
		}
		dst = append(dst, w)
		sum += float64(w)
	}
	return dst, sum
}
