package history

// Counts are of the embeddings of a layer and type, of the steps from Options.Start on.
type Counts struct {
	Hits            int64 `json:"hits"`             // embeddings that were used
	ProvisionalHits int64 `json:"provisional_hits"` // hits on which there was no verdict yet
	Ages            int64 `json:"sum_of_ages"`      // steps from computing to use, over all hits
	UsedRejected    int64 `json:"used_rejected"`    // provisional hits that the verdict of the step that computed them then rejected

	Computed int64 `json:"computed"` // nodes that were live and not used
	Admitted int64 `json:"admitted"` // computed nodes that got a slot
	Refused  int64 `json:"refused"`  // computed nodes to keep that found no slot

	EvictedGrad  int64 `json:"evicted_grad"`  // embeddings that were removed by a verdict
	EvictedStale int64 `json:"evicted_stale"` // by age
	Replaced     int64 `json:"replaced"`      // by a newer one of the same node

	NaN      int64 `json:"nan"`      // gradients that were not finite
	Overflow int64 `json:"overflow"` // embeddings that float16 could not hold
}

// all are the counts in the order in which a snapshot has them.
func (c *Counts) all() [12]*int64 {
	return [...]*int64{
		&c.Hits, &c.ProvisionalHits, &c.Ages, &c.UsedRejected, &c.Computed, &c.Admitted, &c.Refused,
		&c.EvictedGrad, &c.EvictedStale, &c.Replaced, &c.NaN, &c.Overflow,
	}
}

// Add adds what more counts.
func (c *Counts) Add(more Counts) {
	from := more.all()
	for i, n := range c.all() {
		*n += *from[i]
	}
}

// Sub returns the counts since earlier.
func (c Counts) Sub(earlier Counts) Counts {
	from := earlier.all()
	for i, n := range c.all() {
		*n -= *from[i]
	}
	return c
}

// live returns the number of embeddings: each that was admitted is there until it is evicted or
// replaced.
func (c *Counts) live() int64 { return c.Admitted - c.EvictedGrad - c.EvictedStale - c.Replaced }

// Stats has the counts of the embeddings of one layer and type.
type Stats struct {
	Layer int   `json:"layer"`
	Type  int   `json:"type"`
	Slots int   `json:"slots"`
	Live  int64 `json:"live"` // embeddings that are there; some may be too old to use by now
	Counts
}
