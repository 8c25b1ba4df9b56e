package sample

import (
	"fmt"
	"math"
	"strconv"
)

// BatchSeed seeds the draws of a batch. First gives the random numbers. With Config.Smoothed they
// are a mixture of the numbers of First and Next: Drift runs from 0, all First, to 1, all Next.
type BatchSeed struct {
	First, Next uint64
	Drift       float64
}

// Forever as κ means that all batches share their draws.
const Forever = -1

// KappaText returns κ as text: a number, or inf.
func KappaText(kappa int) string {
	if kappa == Forever {
		return "inf"
	}
	return strconv.Itoa(kappa)
}

// ParseKappa is the inverse of KappaText.
func ParseKappa(text string) (int, error) {
	if text == "inf" {
		return Forever, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is neither a number of steps from 1 on nor inf; 1 is independent batches", text)
	}
	return n, nil
}

// Schedule gives the BatchSeed of each step: dependent minibatches (Balin et al., Cooperative
// Minibatching, section 3.2 and appendix A.7). Seed j is a hash. Step i, counted over all epochs,
// has seed i div κ as First, and is (i mod κ)/κ of the way to the next seed. Nested batches, with
// Config.Smoothed unset, look at First alone, so κ batches share their draws. Under LaborStar they
// share random numbers only, since it computes probabilities for each batch alone. With κ = 1 no
// two steps share a seed, and each step has its own: batches are independent.
type Schedule struct {
	Seed  uint64
	Kappa int // at least 1, or Forever
}

// At returns the BatchSeed of step i, counted over all epochs.
func (s Schedule) At(i int) BatchSeed {
	kappa := s.Kappa
	if kappa == Forever {
		kappa = math.MaxInt
	}
	j := uint64(i / kappa)
	return BatchSeed{s.at(j), s.at(j + 1), float64(i%kappa) / float64(kappa)}
}

func (s Schedule) at(j uint64) uint64 { return Hash(s.Seed, 1, j) }

// Alone returns a BatchSeed that shares nothing with the one of another seed, epoch or step.
func Alone(seed uint64, epoch, step int) BatchSeed {
	return BatchSeed{First: StepSeed(seed, epoch, step)}
}
