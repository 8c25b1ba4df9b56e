package disk

// Account is what reading came to, for who counts rows: of features, or neighbour lists. Its JSON
// keys are stable.
type Account struct {
	Rows         int64 `json:"rows"`          // rows served
	RowsRepeated int64 `json:"rows_repeated"` // of these, how many shared a read with an earlier one that was asked for with it
	BytesWanted  int64 `json:"bytes_wanted"`  // of the rows
	// BytesRead is what was asked of the file. It is more than wanted where rows are merged and
	// what lies between them is read too, and less where rows repeat.
	BytesRead     int64   `json:"bytes_read"`
	Reads         int64   `json:"reads"`         // extents of the file
	Seconds       float64 `json:"seconds"`       // in which a read was under way
	Amplification float64 `json:"amplification"` // BytesRead / BytesWanted, 0 if none were wanted
}

// Count adds rows of so many bytes together, and what reading them cost.
func (a *Account) Count(rows, repeated, wanted int64, t Traffic) {
	*a = a.Add(Account{Rows: rows, RowsRepeated: repeated, BytesWanted: wanted, BytesRead: t.Bytes, Reads: t.Reads, Seconds: t.Seconds})
}

// Add is the sum of both.
func (a Account) Add(b Account) Account {
	a.Rows += b.Rows
	a.RowsRepeated += b.RowsRepeated
	a.BytesWanted += b.BytesWanted
	a.BytesRead += b.BytesRead
	a.Reads += b.Reads
	a.Seconds += b.Seconds
	a.Amplification = 0
	if a.BytesWanted > 0 {
		a.Amplification = float64(a.BytesRead) / float64(a.BytesWanted)
	}
	return a
}

// Sub is what a has more than an earlier b.
func (a Account) Sub(b Account) Account {
	return a.Add(Account{
		Rows: -b.Rows, RowsRepeated: -b.RowsRepeated, BytesWanted: -b.BytesWanted, BytesRead: -b.BytesRead, Reads: -b.Reads, Seconds: -b.Seconds,
	})
}
