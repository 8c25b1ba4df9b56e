package task

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/train/sample"
)

// Ways to draw negatives, pairs that are taken for no links.
const (
	// Uniform draws N nodes for each positive.
	Uniform = "uniform"
	// Filtered does so too, and draws again if a pair is a training link or joins a node to itself.
	Filtered = "filtered"
	// Shared draws N nodes for each chunk of positives.
	Shared = "shared"
	// InBatch takes the ends of the other positives in the chunk.
	InBatch = "in-batch"
	// InPairs draws both ends of N pairs for each positive, and skips known links. Only evaluation
	// has it.
	InPairs = "pairs"
	// All takes every node of the type. Evaluation leaves out the nodes of known links.
	All = "all"
	// Given takes the negatives of the dataset. Only evaluation has it.
	Given = "given"
)

// Negatives is a way to draw them, as in "uniform:5".
type Negatives struct {
	Way string
	Of  int // how many; 0 where the way takes no number
}

// ParseNegatives reads one of ways: "uniform:5", "in-batch".
func ParseNegatives(text string, ways ...string) (Negatives, error) {
	way, number, numbered := strings.Cut(text, ":")
	var forms []string
	for _, w := range ways {
		takes := w != InBatch && w != Given && w != All
		form := w
		if takes {
			form += ":N"
		}
		forms = append(forms, form)
		if w != way || takes != numbered {
			continue
		}
		if !takes {
			return Negatives{Way: w}, nil
		}
		if n, err := strconv.Atoi(number); err == nil && n >= 1 && n <= math.MaxInt32 {
			return Negatives{w, n}, nil
		}
	}
	return Negatives{}, fmt.Errorf("%s: there are %s, N being at least 1", text, sample.Names(forms))
}

// Ends of a link that another node replaces in negatives.
const (
	CorruptDst  = "dst"
	CorruptSrc  = "src"
	CorruptBoth = "both" // as many negatives of each
)

// corrupted returns an element for each end of links that negatives replace: true for the
// destination.
func corrupted(ends string) []bool {
	switch ends {
	case CorruptSrc:
		return []bool{false}
	case CorruptBoth:
		return []bool{true, false}
	}
	return []bool{true}
}
