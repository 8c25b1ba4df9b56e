package store

// Order lists the stored ids by ascending original id. The slice is borrowed.
func (m IDs) Order() []NodeID { return m.order }
