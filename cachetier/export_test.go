package cachetier

// Layout is what the budgets bought.
func (s *Stack) Layout() (device, hot, slots, lookahead int) {
	return s.layout.device, s.hot, s.slots, s.lookahead
}

// SetsInUse counts the sets that somebody refers to.
func (s *Stack) SetsInUse() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.made - len(s.mu.unused)
}

// SetPortion has n rows to read listed at a time.
func (s *Stack) SetPortion(n int) { s.portion = make([]uint32, n) }

// Calls counts those that read or wait now.
func (s *Stack) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.calls)
}
