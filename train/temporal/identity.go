package temporal

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/sample"
)

// IDs fills ids with the users' ids of the nodes at places, as 64 bits. Another dataset has the
// same for the same node.
type IDs func(places []uint32, ids []uint64) error

// identityTag sets these hashes apart from others. They have no seed, so all runs tell nodes apart
// by the same columns.
const identityTag = 26

// identity sets row to random columns that belong to id. Each value counts the ones among 64 bits
// of a hash, minus their mean of 32, over their deviation of 4. That is close to a standard normal
// value, the same on every machine, and exact in float16.
func identity(row []byte, id uint64) {
	key := sample.Hash(identityTag, id)
	for c := 0; 4*c < len(row); c++ {
		ones := bits.OnesCount64(sample.Fold(key, uint64(c)))
		binary.LittleEndian.PutUint32(row[4*c:], math.Float32bits(float32(ones-32)/4))
	}
}

// takeIdentity computes the identity columns of the nodes of a batch. They are not stored.
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
