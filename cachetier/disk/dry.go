package disk

import (
	"errors"

	"github.com/gnnstore/gnnstore/store"
)

// Dry returns a Reader without files, for callers that only ask what reads would take. Merge uses
// costs, Takes counts whole pages that have checksums, and Read fails. Zero costs mean Assumed.
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
