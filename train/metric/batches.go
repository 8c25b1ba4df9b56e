package metric

import (
	"cmp"
	"fmt"
)

// Batches measures the scores of links that come in batches, as the links of a stream do: AP and
// ROCAUC of each batch alone and of all together. The two differ, since batches may be easier to
// tell apart than the pairs in them: print both. Scores are of any ordered type: float32 from a
// network, or integers where float32 would make different ones equal.
//
// The zero value is ready. It keeps all scores, 4 bytes each if they are of 4 bytes, 4 bytes a
// rank, and up to twice that while lists grow. One goroutine uses it.
type Batches[S cmp.Ordered] struct {
	batch, all scores[S]
	ranks      Ranks   // for MRR
	sum        Batched // of the batches
	undefined  int     // batches without a negative
}

// Batched holds the metrics of Batches.
type Batched struct {
	AP        float64 `json:"ap"` // the mean over the batches, all of one weight
	AUC       float64 `json:"auc"`
	PooledAP  float64 `json:"pooled_ap"` // of all scores as one batch
	PooledAUC float64 `json:"pooled_auc"`
	Batches   int     `json:"batches"` // with a positive
	Positives int     `json:"positives"`
	// MRR is over all positives that were ranked among candidates of their own; 0 where none was.
	MRR float64 `json:"mrr,omitempty"`
}

// Rank adds the rank of a positive among candidates of its own. higher of them score higher, and
// same the same: see MRR.
func (b *Batches[S]) Rank(higher, same int) { b.ranks.Add(higher, same) }

// RankAmong adds the rank of a positive's score among the scores of its candidates. None may be
// NaN.
func (b *Batches[S]) RankAmong(positive S, candidates []S) {
	higher, same, _ := rankAmong(positive, candidates)
	b.Rank(higher, same)
}

// Add takes a batch. One without positives does not count.
func (b *Batches[S]) Add(positive, negative []S) {
	if len(positive) == 0 {
		return
	}
	b.batch.reset()
	b.batch.addAll(positive, negative)
	b.all.nan += b.batch.nan
	b.all.positive, b.all.negative = append(b.all.positive, b.batch.positive...), append(b.all.negative, b.batch.negative...)
	b.sum.Batches++
	b.sum.Positives += len(positive)
	switch {
	case b.batch.nan > 0: // Value says so
	case len(negative) == 0:
		b.undefined++
	default:
		b.sum.AP += b.batch.ap()
		b.sum.AUC += b.batch.auc()
	}
}

// Value measures all batches since the last Reset.
func (b *Batches[S]) Value() (Batched, error) {
	switch {
	case b.all.nan > 0:
		return Batched{}, undefined(AP, fmt.Sprintf("%d scores are NaN", b.all.nan))
	case b.sum.Batches == 0:
		return Batched{}, undefined(AP, "there is no positive")
	case b.undefined > 0:
		return Batched{}, undefined(AP, fmt.Sprintf("%d batches have no negative", b.undefined))
	}
	v := b.sum
	v.AP /= float64(v.Batches)
	v.AUC /= float64(v.Batches)
	v.PooledAP, v.PooledAUC = b.all.ap(), b.all.auc()
	v.MRR, _ = b.ranks.Value() // of none: 0
	return v, nil
}

// Reset forgets all batches, and keeps the memory.
func (b *Batches[S]) Reset() {
	b.all.reset()
	b.ranks.Reset()
	b.sum, b.undefined = Batched{}, 0
}
