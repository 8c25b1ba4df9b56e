package step

// Tally is the loss and the hits of a batch, or of several: sums, so that an epoch can be cut
// anywhere.
type Tally struct {
	Loss   float64 `json:"loss"`   // sum over rows, or over the classes whose target is known
	Weight float64 `json:"weight"` // of what Loss sums: Loss/Weight is the mean
	// Hits/Of is the training accuracy. With one class a node, Hits counts the right rows, and Of
	// all rows. With several, Hits is 2·tp and Of is 2·tp+fp+fn: their quotient is the micro-F1.
	Hits int64 `json:"hits"`
	Of   int64 `json:"of"`
	// Measured/Rows is the mean of a metric that batches have apart.
	Measured float64 `json:"measured,omitempty"`
	Rows     int64   `json:"rows,omitempty"`
}

// Add adds the sums of b.
func (a *Tally) Add(b Tally) {
	a.Loss += b.Loss
	a.Weight += b.Weight
	a.Hits += b.Hits
	a.Of += b.Of
	a.Measured += b.Measured
	a.Rows += b.Rows
}

// Mean is the loss, 0 of nothing.
func (a Tally) Mean() float64 {
	if a.Weight == 0 {
		return 0
	}
	return a.Loss / a.Weight
}
