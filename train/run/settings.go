package run

import (
	"fmt"
	"strings"

	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/task"
)

// Size describes the training data, as far as options depend on it.
type Size struct {
	Examples  int64   // training nodes with a label, links or edges
	Nodes     int64   // of the types that links join, or of the target
	Pairs     float64 // sources times destinations of a link; 0 where links are not learnt
	Relations int     // relations whose links are learnt together
	Learnt    bool    // the ends of links have learnt rows for input
	Typed     bool    // the network knows several types of nodes or relations
	Bare      bool    // no node has features
	Validated bool    // there are validation nodes, links or edges
}

// AutoSettings explains the values a run chose for options that were not given. A resumed run keeps
// them.
type AutoSettings struct {
	Reason string `json:"reason"` // a line
}

const (
	// smallSet counts labelled training nodes: one step of the usual batch.
	smallSet = 1000
	// Links are dense if nodes have denseLinks or more on average. Nodes of ogbl-ddi have 500.
	denseLinks = 100
	// Negatives are filtered if at least denseShare of all pairs are links.
	denseShare = 0.01
	// mostLinks bounds the batch of dense links. The memory for scores grows with it.
	mostLinks = 1 << 14
)

// Settle chooses the options in o.Left by the size of the training data, and explains its choice.
// It returns nil if the defaults stay.
func (o *Options) Settle(of Size) *AutoSettings {
	s := settling{Options: o}
	s.negatives(of)
	switch {
	case o.Links() && o.Layers == 0 && of.Relations > 1:
		s.relations(of)
	case o.Links() && o.Layers > 0 && of.Learnt && of.Examples >= denseLinks*of.Nodes:
		s.dense(of)
	case !o.Links() && !o.Edges() && !of.Typed && of.Examples <= smallSet:
		s.small(of)
	case !o.Links() && !o.Edges() && of.Typed && of.Bare && of.Examples <= smallSet:
		s.smallTyped(of)
	}
	s.because("")
	if len(s.reasons) == 0 {
		return nil
	}
	return &AutoSettings{Reason: "settings auto: " + strings.Join(s.reasons, "; ")}
}

// settling collects the chosen options and their explanations.
type settling struct {
	*Options
	why     string
	chosen  []string // the options chosen because of why
	reasons []string // the explanations before
}

// because ends one explanation and begins the next.
func (s *settling) because(format string, args ...any) {
	if len(s.chosen) > 0 {
		s.reasons = append(s.reasons, s.why+": "+strings.Join(s.chosen, ", "))
	}
	s.why, s.chosen = fmt.Sprintf(format, args...), nil
}

// choose sets an option that was left open.
func choose[T comparable](s *settling, key string, into *T, value T) {
	if s.Left[key] && *into != value {
		*into = value
		s.chosen = append(s.chosen, fmt.Sprintf("{%s} %v", key, value))
	}
}

// small chooses settings for few labelled nodes, which a network learns by heart. By validation
// with one seed each, none of five other settings was better on Amazon Computers with 20 nodes a
// class, and one was level on Chameleon; see tools/results/accuracy.md.
func (s *settling) small(of Size) {
	s.because("%d labelled training nodes are few", of.Examples)
	choose(s, "lr", &s.LR, 0.01)
	if s.Heads > 0 && 64%s.Heads == 0 {
		choose(s, "hidden", &s.Hidden, 64)
	}
	choose(s, "dropout", &s.Dropout, 0.6)
	choose(s, "input_dropout", &s.InputDropout, 0.6)
	choose(s, "weight_decay", &s.Optim.WeightDecay, 5e-4)
	// an epoch is one step; where few nodes validate, fewer evaluations are better to choose from
	if s.Epochs == Auto && of.Examples <= int64(s.Batch) {
		choose(s, "eval_every", &s.EvalEvery, 5)
	}
}

// smallTyped chooses settings for few labelled nodes in a typed graph without features, as RDF data
// is. They come from R-GCN's paper (Schlichtkrull et al. 2018, section 5.1). The paper also uses
// basis matrices; a run does not choose those. With a fifth of the training nodes of MUTAG and AIFB
// held out, 500 updates with the other defaults gave R-GCN no better accuracy than these 50; see
// tools/results/accuracy.md.
func (s *settling) smallTyped(of Size) {
	s.because("%d labelled training nodes are few, and there are no features", of.Examples)
	choose(s, "lr", &s.LR, 0.01)
	if s.Heads > 0 && 16%s.Heads == 0 {
		choose(s, "hidden", &s.Hidden, 16)
	}
	choose(s, "norm", &s.Norm, "none")
	if s.Epochs == Auto && !of.Validated {
		choose(s, "epochs", &s.Epochs, 50)
	}
}

// dense chooses settings for links among nodes that have learnt rows and many links each. After a
// layer of means over hundreds of neighbours, the rows of all nodes are much alike, and dot
// products tell little more than degrees: on ogbl-ddi dot reaches Hits@20 of 0. An MLP on
// element-wise products tells nodes apart. Validation of ogbl-ddi reached 37 % with LayerNorm, at a
// rate of 0.003 and without dropout, and 51 % without LayerNorm, at 0.005 and with dropout; see
// tools/results/accuracy.md. A step reads the rows of all nodes, however few links it has; so
// batches are large.
func (s *settling) dense(of Size) {
	s.because("%d links of %d nodes, whose rows are learnt, are dense", of.Examples, of.Nodes)
	if s.Left["decoder"] {
		choose(s, "decoder", &s.Decoder, model.PairMLP)
	}
	choose(s, "norm", &s.Norm, "none")
	choose(s, "lr", &s.LR, 0.005)
	choose(s, "batch", &s.Batch, int(min(max(2*of.Nodes, int64(s.Batch)), mostLinks)))
}

// negatives chooses filtered negatives where many pairs are links. If links are also negatives, the
// network cannot score a link above a bound, and the more links there are the lower the bound is.
// Then the highest scores do not tell links from other pairs. On ogbl-ddi 12 % of all pairs are
// links, and filtered negatives raise Hits@20 of validation from 4 to 19 % after 251 steps; see
// tools/results/accuracy.md.
func (s *settling) negatives(of Size) {
	if !s.Links() || of.Relations != 1 || float64(of.Examples) < denseShare*of.Pairs {
		return
	}
	s.because("%.2g %% of the pairs that links could join are links", 100*float64(of.Examples)/of.Pairs)
	choose(s, "negatives", &s.Negatives, task.Filtered+":1")
}

// relations chooses settings for knowledge graphs. Each relation has a vector. Negatives replace
// both ends, since evaluation ranks both. If scores are products, each positive is compared with
// all nodes, unless there are too many (Lacroix et al. 2018). ComplEx has an N3 penalty: on UMLS
// 0.1 was the best of 0, 0.01 and 0.1 by validation. It also has reciprocal vectors, which raise
// the validation MRR on UMLS from 75 to 78 %. Decoders by distance have adversarial negatives (Sun
// et al. 2019).
func (s *settling) relations(of Size) {
	s.because("links of %d relations", of.Relations)
	if s.Left["decoder"] && s.Decoder == model.Dot {
		choose(s, "decoder", &s.Decoder, model.ComplEx)
	}
	if s.Decoder == model.ComplEx {
		choose(s, "n3", &s.N3, 0.1)
		if s.Left["corrupt"] || s.Corrupt == task.CorruptBoth {
			choose(s, "reciprocal", &s.Reciprocal, true)
		}
	}
	if s.Left["negatives"] {
		s.compare(of)
	}
	choose(s, "corrupt", &s.Corrupt, task.CorruptBoth)
}

// compare chooses the negatives and the loss for links of several relations.
func (s *settling) compare(of Size) {
	switch {
	case s.Decoder.Distance():
		choose(s, "negatives", &s.Negatives, task.Shared+":128")
		if s.Loss == task.BCE {
			choose(s, "adversarial", &s.Adversarial, 0.5)
		}
	case !s.Decoder.Product() || !s.Left["loss"]:
	case of.Nodes > manyNodes || s.Spread(): // each worker would score all nodes
		choose(s, "negatives", &s.Negatives, task.Shared+":64")
		choose(s, "loss", &s.Loss, task.CE)
	default:
		choose(s, "negatives", &s.Negatives, task.All)
		choose(s, "loss", &s.Loss, task.CE)
	}
}

// manyNodes are too many to score all of them for each positive: a step of 1000 positives would
// have 64 M scores or more.
const manyNodes = 1 << 16
