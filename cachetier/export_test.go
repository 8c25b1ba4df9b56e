package cachetier

// Layout is what the budgets bought.
func (s *Stack) Layout() (device, hot, slots, lookahead int) {
	return s.layout.device, s.hot, s.slots, s.lookahead
}

// SetsInUse counts the sets that somebody refers to, those that are packed by their pages.
func (s *Stack) SetsInUse() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.mu.made - len(s.mu.unused)
	if j := s.join; j != nil {
		n += j.pages.All() - j.pages.Free() // of those that are packed
	}
	return n
}

// SetPortion has n rows to read listed at a time.
func (s *Stack) SetPortion(n int) { s.portion = make([]uint32, n) }

// Calls counts those that read or wait now.
func (s *Stack) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.calls)
}
