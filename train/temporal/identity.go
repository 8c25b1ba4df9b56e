package temporal

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/sample"
)

// IDs fills ids with what users know the nodes at places by: 64 bits that another dataset has for the same node as well.
type IDs func(places []uint32, ids []uint64) error

// identityTag is for hashes of ids. No seed goes into them: all runs tell nodes apart by the same columns.
const identityTag = 26

// identity sets a row of random columns that tell the node of an id from others. Each value is how far the ones among
// 64 bits of a hash are from their mean of 32, over their deviation of 4. That is close to the standard normal
// distribution, the same on every machine, and exact in float16.
func identity(row []byte, id uint64) {
	key := sample.Hash(identityTag, id)
	for c := 0; 4*c < len(row); c++ {
		ones := bits.OnesCount64(sample.Fold(key, uint64(c)))
		binary.LittleEndian.PutUint32(row[4*c:], math.Float32bits(float32(ones-32)/4))
	}
}

// takeIdentity makes identity columns for the nodes of a batch. They are computed for each batch, and stored nowhere.
func (f *feed) takeIdentity(b *Batch, cols int) (kernels.Tensor, error) {
	f.nodeIDs = append(f.nodeIDs[:0], make([]uint64, len(b.Nodes))...)
	if err := f.ids(b.Nodes, f.nodeIDs); err != nil {
		return kernels.Tensor{}, err
	}
	x := f.room.identity.tensor(f.be, kernels.F32, len(b.Nodes), cols)
	return x, f.staging.Fill(x, func(all []byte) error {
		for i, id := range f.nodeIDs {
			identity(all[4*cols*i:][:4*cols], id)
		}
		return nil
	})
}
