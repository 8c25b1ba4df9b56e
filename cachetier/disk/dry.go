package disk

import (
	"errors"

	"github.com/gnnstore/gnnstore/store"
)

// Dry is a Reader of no files, for who asks what reads would take: it merges and counts by costs,
// in the blocks that have checksums, and its Read fails. Costs of zero are Assumed.
func Dry(costs Costs) *Reader {
	if costs == (Costs{}) {
		costs = Assumed
	}
	return &Reader{kind: Pread, why: "nothing is read", costs: costs, engine: dry{}, meter: newMeter()}
}

type dry struct{}

func (dry) read(func() (Extent, bool), func(Extent, []byte) error) error {
	return errors.New("reads are only counted here")
}

func (dry) alignment() int64 { return store.PageSize }
func (dry) close()           {}
