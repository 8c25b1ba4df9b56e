package cli

// Trained is what the developer programs read of `gnnstore train --json`. Accuracies are fractions.
type Trained struct {
	Epochs []struct {
		Epoch    int     `json:"epoch"`
		Loss     float64 `json:"loss"`
		ValidAcc float64 `json:"valid_acc"`
		Seconds  float64 `json:"seconds"`
	} `json:"epochs"`
	Best struct {
		Epoch    int     `json:"epoch"`
		ValidAcc float64 `json:"valid_acc"`
		TestAcc  float64 `json:"test_acc"`
	} `json:"best"`
	ParamsXXH3 string `json:"params_xxh3"`

	InputRows int64 `json:"input_rows"` // of training
	Tiers     struct {
		Device Tier `json:"device"`
		Host   Tier `json:"host"`
	} `json:"tiers"`
	Disk struct {
		Rows      int64 `json:"rows"`
		BytesRead int64 `json:"bytes_read"`
	} `json:"disk"`
	DiskEngine   string `json:"disk_engine"` // and why
	PeakRSSBytes int64  `json:"peak_rss_bytes"`
}

// Tier is what a tier of the memory did.
type Tier struct {
	RowsHit int64 `json:"rows_hit"`
}

// Losses lists the loss of every epoch.
func (t *Trained) Losses() []float64 {
	losses := make([]float64, len(t.Epochs))
	for i, epoch := range t.Epochs {
		losses[i] = epoch.Loss
	}
	return losses
}

// Inspected is what the developer programs read of `gnnstore inspect --json`, of a dataset with one type of node.
type Inspected struct {
	Seal      string `json:"seal"`
	NodeTypes []struct {
		Count int64 `json:"count"`
	} `json:"node_types"`
	Relations []struct {
		Edges int64 `json:"edges"`
	} `json:"relations"`
	Labels []struct {
		Classes int64 `json:"classes"`
	} `json:"labels"`
	Splits []struct {
		Train int64 `json:"train"`
		Valid int64 `json:"valid"`
		Test  int64 `json:"test"`
	} `json:"splits"`
}
