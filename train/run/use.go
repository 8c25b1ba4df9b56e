package run

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/tiers"
)

// Use chooses the weights of a run for a network, and the memory and the disk that it gets.
type Use struct {
	// Checkpoint is BestWeights or LastWeights; empty: the best where validation has chosen some,
	// else the last.
	Checkpoint string
	// OlderCheckpoint uses the newest readable checkpoint if the newest one is damaged or missing.
	// Otherwise that is an error.
	OlderCheckpoint bool
	// EvalNegatives chooses the negatives of a measurement, as in Options; empty: the run's.
	EvalNegatives string
	// MemoryBytes is as in tiers.Options; 0: the run's.
	MemoryBytes int64
	// Device computes, as in Options; empty: the CPU, whatever the run was trained on.
	Device string
	// MatMul is the precision of products, as in Options; empty: float32, whatever the run was
	// trained with.
	MatMul kernels.Precision
	// Beside is the number of bytes that the caller takes of the memory.
	Beside int64
	// Scratch is a directory that nobody else uses. It gets hidden rows that do not fit in memory,
	// and the state of nodes. Empty: hidden rows must fit.
	Scratch string
}

// Validate reports every problem.
func (u Use) Validate() error {
	err := errors.Join(validateDevice(u.Device), validateMatMul(u.MatMul, u.Device))
	if _, none := kernels.ParseSet("auto", u.MatMul); none != nil && u.MatMul == kernels.BF16 && kernels.IsCPU(u.Device) {
		err = errors.Join(err, fmt.Errorf("{matmul} %s: %w; take {matmul} f32", u.MatMul, none))
	}
	if u.Checkpoint != "" && u.Checkpoint != BestWeights && u.Checkpoint != LastWeights {
		err = errors.Join(fmt.Errorf("{checkpoint} %s: there are best and last", u.Checkpoint), err)
	}
	return err
}

// Of returns the options of a recorded run, with the options of u in place of the run's. Budgets
// follow from the memory and not from the record, since they do not change results.
func (u Use) Of(record *Record) Options {
	o := record.Options
	if o.Kernels = record.Kernels; !slices.Contains(kernels.SetsOf(u.MatMul), kernels.Set(o.Kernels)) {
		o.Kernels = "" // this machine lacks them
	}
	if o.Device, o.MatMul = u.Device, u.MatMul; !kernels.IsCPU(o.Device) {
		o.Kernels = ""
	}
	if u.EvalNegatives != "" {
		o.EvalNegatives = u.EvalNegatives
	}
	budgets := tiers.DefaultOptions()
	budgets.Workers, budgets.MemoryBytes = o.Workers, o.MemoryBytes
	budgets.Cache.Policy, budgets.Cache.Engine, budgets.Cache.Costs = o.Cache.Policy, o.Cache.Engine, o.Cache.Costs
	if u.MemoryBytes > 0 {
		budgets.MemoryBytes = u.MemoryBytes
	}
	o.Options, o.Init, o.InitRows = budgets, "", nil
	return o
}

// Used names the weights that a network has.
type Used struct {
	Checkpoint string `json:"checkpoint"` // BestWeights or LastWeights
	Epoch      int    `json:"epoch"`      // whole epochs that led to them
	Updates    int    `json:"updates"`    // steps that led to them
}

// Cost has what the use of a network took.
type Cost struct {
	BytesRead     int64 `json:"bytes_read"` // of rows and state, from disk
	PeakRSSBytes  int64 `json:"peak_rss_bytes"`
	PeakFileBytes int64 `json:"peak_file_bytes"` // of mapped files, the program's among them
}

// Cost returns the bytes read with the peaks of memory, which it measures once more.
func (p *Peak) Cost(read int64) Cost {
	p.raise(kernels.ResidentBytes())
	own, file := p.Bytes()
	return Cost{read, own, file}
}

// Pick returns the weights that u chooses from a checkpoint with this progress.
func (u Use) Pick(at *Progress) (Used, error) {
	switch {
	case u.Checkpoint == BestWeights && !at.HasBest:
		return Used{}, errors.New("validation has chosen no weights; take {checkpoint} last")
	case u.Checkpoint == LastWeights || !at.HasBest:
		return Used{LastWeights, at.Epochs, at.Updates}, nil
	}
	best := at.SoFar.Best.Epoch
	return Used{BestWeights, best, best * ((at.Updates - at.Partial.Steps) / max(at.Epochs, 1))}, nil
}
