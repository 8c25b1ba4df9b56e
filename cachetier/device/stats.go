package device

// Stats counts what a Ledger did up to the last plan. Every embedding that plans came to see is in one of four states:
//
//	Admitted = Live + Superseded + Vetoed + Expired
//
// Reserved is Admitted + Holes, and the slots that plans do not see yet.
type Stats struct {
	Used int64 // embeddings that plans used
	Ages int64 // steps between writing and use, over all uses: Ages / Used is the mean age

	Reserved int64 // slots given to steps
	Refused  int64 // slots that steps asked for and did not get
	Holes    int64 // slots of rows that were NaN
	Admitted int64 // embeddings that plans came to see

	Superseded int64 // replaced by a younger one of the same key, whose step could not see them
	Vetoed     int64 // evicted by a step that used them
	Expired    int64 // evicted by age

	Displaced int64 // feature rows that slots took the place of
	Restored  int64 // feature rows that came back

	Live  int // embeddings in the index; some may be too old to use by now
	Slots int // slots in the ring, free ones included
}

// Stats is a copy of the counters.
func (l *Ledger) Stats() Stats {
	st := l.stats
	st.Slots = l.ring.used.n + l.ring.free.n
	return st
}
