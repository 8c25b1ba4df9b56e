package task

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/train/sample"
)

// Ways to draw pairs that are taken for no links.
const (
	Uniform = "uniform" // each positive has so many of its own
	// Filtered is Uniform without links that are trained on and without pairs of a node with itself:
	// these are drawn anew.
	Filtered = "filtered"
	Shared   = "shared"   // a chunk of positives has so many together
	InBatch  = "in-batch" // each positive has the ends of the others in its chunk
	// InPairs is for evaluation: for each positive so many pairs that are no known links. Both ends
	// are drawn.
	InPairs = "pairs"
	// All is every node of the type. Evaluation leaves out those of known links.
	All   = "all"
	Given = "given" // of evaluation: those of the dataset
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

// Ends of a link that negatives have another node in the place of.
const (
	CorruptDst  = "dst"
	CorruptSrc  = "src"
	CorruptBoth = "both" // as many negatives of each
)

// corrupted says for each side of links that negatives replace whether it is the destination.
func corrupted(ends string) []bool {
	switch ends {
	case CorruptSrc:
		return []bool{false}
	case CorruptBoth:
		return []bool{true, false}
	}
	return []bool{true}
}
