package cachetier

// Layout returns what the budgets bought: rows of the regions, slots, and groups of look-ahead.
func (s *Stack) Layout() (device, hot, slots, lookahead int) {
	return s.layout.device, s.hot, s.slots, s.lookahead
}

// SetsInUse counts the sets in use: bitmaps, and the pages of packed sets.
func (s *Stack) SetsInUse() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.mu.made - len(s.mu.unused)
	if j := s.join; j != nil {
		n += j.pages.All() - j.pages.Free() // pages of packed sets
	}
	return n
}

// SetPortion makes loading list n rows at a time.
func (s *Stack) SetPortion(n int) { s.portion = make([]uint32, n) }

// Calls counts the calls that are reading or waiting now.
func (s *Stack) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.calls)
}
