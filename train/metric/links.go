package metric

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Metrics of links, beside ROCAUC.
const (
	// AP is average precision: Σ (recall at a threshold - recall at the one before) · precision
	// there, over the different scores from the highest on. Equal scores are one threshold, as in
	// scikit-learn.
	AP Kind = "ap"
	// MRR is the mean over the positives of 1/rank among their own negatives. A rank is 1, plus 1
	// for each negative that scores higher, plus a half for each that scores the same. With ties
	// that is halfway between the best and the worst rank, as in TGB's evaluator.
	MRR Kind = "mrr"
	// hits is the prefix of hits@K. If all links share a pool of negatives, Hits(K) is the share of
	// positives that score strictly higher than the K-th best negative, or 1 if the pool has fewer
	// than K. For [Ranks] it is the share of ranks up to K. OGB's evaluators do both, too.
	hits = "hits@"
)

// LinkKinds names the metrics of links, for people.
const LinkKinds = "roc-auc, ap, mrr and hits@K"

// Hits returns the Kind hits@k: the share of positives among the first k.
func Hits(k int) Kind { return Kind(hits + strconv.Itoa(k)) }

// Best returns the K of Hits; ok is false for other kinds.
func (k Kind) Best() (n int, ok bool) {
	text, ok := strings.CutPrefix(string(k), hits)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n > 0 && text == strconv.Itoa(n)
}

// OfLinks reports whether k measures links.
func (k Kind) OfLinks() bool {
	_, hits := k.Best()
	return hits || k == ROCAUC || k == AP || k == MRR
}

// Links measures the scores of positives, links that exist, and of negatives, links that do not. It
// keeps 4 bytes for each score, or for [Lists] 4 bytes for each positive, and up to twice that
// while slices grow.
type Links interface {
	// Add takes the scores of positives and of negatives. [Lists] want the same number of negatives
	// for each positive, in the order of the positives. For others, all added negatives are one
	// pool.
	Add(positive, negative []float32)
	// Value is the metric of all scores since the last Reset.
	Value() (float64, error)
	Reset()
}

// NewLinks makes the accumulator of k. Negatives are one pool, except for MRR.
func NewLinks(k Kind) (Links, error) {
	best, isHits := k.Best()
	switch {
	case k == ROCAUC:
		return &pooled{kind: k, of: (*scores[float32]).auc}, nil
	case k == AP:
		return &pooled{kind: k, of: (*scores[float32]).ap}, nil
	case isHits:
		return &pooled{kind: k, of: func(s *scores[float32]) float64 { return s.hits(best) }}, nil
	case k == MRR:
		return NewLists(k)
	}
	return nil, fmt.Errorf("{metric} %s: of links there are %s", k, LinkKinds)
}

// Ranks measures positives by their rank among candidates of their own: MRR, and Hits(K) as the
// share of ranks up to K. A rank is 1, plus 1 for each candidate that scores higher, plus a half
// for each that scores the same. It keeps 4 bytes a positive.
type Ranks struct {
	kind   Kind
	best   int      // of Hits
	halves []uint32 // twice each rank
	nan    int
}

// NewRanks makes the accumulator of k.
func NewRanks(k Kind) (*Ranks, error) {
	best, isHits := k.Best()
	if !isHits && k != MRR {
		return nil, fmt.Errorf("{metric} %s: of ranks there are mrr and hits@K", k)
	}
	return &Ranks{kind: k, best: best}, nil
}

// Add adds a positive. higher of its candidates score higher, and same the same.
func (r *Ranks) Add(higher, same int) { r.halves = append(r.halves, uint32(2+2*higher+same)) }

// AddNaN adds a positive that has NaN for its score, or for a candidate's.
func (r *Ranks) AddNaN() { r.nan++ }

// Value returns the metric of all positives since the last Reset. It sums from the
// smallest rank to the largest, so the order of positives does not change the result.
func (r *Ranks) Value() (float64, error) {
	switch {
	case r.nan > 0:
		return 0, undefined(r.kind, fmt.Sprintf("%d positives have scores that are NaN, or their negatives do", r.nan))
	case len(r.halves) == 0:
		return 0, undefined(r.kind, "there is no positive")
	case r.best > 0:
		return r.Within(r.best), nil
	}
	slices.Sort(r.halves)
	sum := 0.0
	for _, rank := range r.halves {
		sum += 2 / float64(rank)
	}
	return sum / float64(len(r.halves)), nil
}

// Within returns the share of ranks up to k since the last Reset.
func (r *Ranks) Within(k int) float64 {
	hits := 0
	for _, half := range r.halves {
		if half <= uint32(2*k) {
			hits++
		}
	}
	return float64(hits) / float64(len(r.halves))
}

// Reset forgets all positives.
func (r *Ranks) Reset() { r.halves, r.nan = r.halves[:0], 0 }

// Lists computes [Ranks] from the scores of positives and of their own negatives.
type Lists struct{ Ranks }

// NewLists makes the accumulator of k.
func NewLists(k Kind) (*Lists, error) {
	r, err := NewRanks(k)
	if err != nil {
		return nil, err
	}
	return &Lists{*r}, nil
}

// Add takes the scores of positives, and of the same number of negatives for each, in the order of
// the positives.
func (l *Lists) Add(positive, negative []float32) {
	if len(positive) == 0 {
		return
	}
	if len(negative)%len(positive) != 0 {
		panic(fmt.Sprintf("metric: %d negatives of %d positives", len(negative), len(positive)))
	}
	each := len(negative) / len(positive)
	for i, x := range positive {
		higher, same, nan := rankAmong(x, negative[i*each:(i+1)*each])
		if nan {
			l.AddNaN()
		}
		l.Ranks.Add(higher, same)
	}
}

// rankAmong counts the candidates that score higher than a positive, and those that score the same.
// nan reports whether one of the scores is NaN.
func rankAmong[S cmp.Ordered](positive S, candidates []S) (higher, same int, nan bool) {
	nan = positive != positive
	for _, x := range candidates {
		switch {
		case x != x:
			nan = true
		case x > positive:
			higher++
		case x == positive:
			same++
		}
	}
	return higher, same, nan
}

// pooled is a metric of positives and of one pool of negatives.
type pooled struct {
	kind Kind
	of   func(*scores[float32]) float64
	s    scores[float32]
}

func (p *pooled) Add(positive, negative []float32) { p.s.addAll(positive, negative) }

func (p *pooled) Value() (float64, error) {
	_, isHits := p.kind.Best()
	switch {
	case p.s.nan > 0:
		return 0, undefined(p.kind, fmt.Sprintf("%d scores are NaN", p.s.nan))
	case len(p.s.positive) == 0:
		return 0, undefined(p.kind, "there is no positive")
	case len(p.s.negative) == 0 && !isHits:
		return 0, undefined(p.kind, "there is no negative")
	}
	return p.of(&p.s), nil
}

func (p *pooled) Reset() { p.s.reset() }

// ap returns the average precision. It sorts the scores.
func (s *scores[S]) ap() float64 {
	slices.Sort(s.positive)
	slices.Sort(s.negative)
	sum, all := 0.0, float64(len(s.positive))
	for p, n := len(s.positive), len(s.negative); p > 0; { // the first p and n are below the threshold
		threshold, before := s.positive[p-1], p
		for p > 0 && s.positive[p-1] == threshold {
			p--
		}
		for n > 0 && s.negative[n-1] >= threshold {
			n--
		}
		right, wrong := len(s.positive)-p, len(s.negative)-n
		sum += float64(before-p) / all * (float64(right) / float64(right+wrong))
	}
	return sum
}

// hits returns the share of positives that score strictly higher than the k-th best negative. It
// sorts the negatives.
func (s *scores[S]) hits(k int) float64 {
	if len(s.negative) < k {
		return 1
	}
	slices.Sort(s.negative)
	limit, above := s.negative[len(s.negative)-k], 0
	for _, x := range s.positive {
		if x > limit {
			above++
		}
	}
	return float64(above) / float64(len(s.positive))
}
