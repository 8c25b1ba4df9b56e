package disk

// Account counts rows (of features, or neighbour lists) and what reading them cost. Its JSON keys
// are stable.
type Account struct {
	Rows         int64 `json:"rows"`          // rows served
	RowsRepeated int64 `json:"rows_repeated"` // of Rows: repeats within a call, which share a read
	BytesWanted  int64 `json:"bytes_wanted"`  // total size of Rows
	// BytesRead counts the bytes asked of the file. It exceeds BytesWanted where rows are merged
	// and the gaps between them are read too. Repeated rows lower it.
	BytesRead     int64   `json:"bytes_read"`
	Reads         int64   `json:"reads"`         // extents read
	Seconds       float64 `json:"seconds"`       // spent in Reader.Read
	Amplification float64 `json:"amplification"` // BytesRead / BytesWanted, 0 if none were wanted
}

// Count adds rows, the repeats among them, the bytes they wanted together, and the traffic t that
// reading them cost.
func (a *Account) Count(rows, repeated, wanted int64, t Traffic) {
	*a = a.Add(Account{Rows: rows, RowsRepeated: repeated, BytesWanted: wanted, BytesRead: t.Bytes, Reads: t.Reads, Seconds: t.Seconds})
}

// Add returns the sum of a and b, with Amplification computed anew.
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

// Sub returns the counts of a since b, an earlier copy.
func (a Account) Sub(b Account) Account {
	return a.Add(Account{
		Rows: -b.Rows, RowsRepeated: -b.RowsRepeated, BytesWanted: -b.BytesWanted, BytesRead: -b.BytesRead, Reads: -b.Reads, Seconds: -b.Seconds,
	})
}
