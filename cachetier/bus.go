package cachetier

import (
	"context"

	"github.com/gnnstore/gnnstore/kernels"
)

// Lock has by page-lock the static region and the cache, as far as it can, until Close. Nobody may
// plan, load or gather meanwhile.
func (s *Stack) Lock(by kernels.Locker) kernels.Locked {
	return kernels.LockAll(by, s.static, s.cached)
}

// StaticAlone reports whether the static region has all rows that Gather copies, and they never
// change: a device may then read them at any time.
func (s *Stack) StaticAlone() bool {
	_, apart := s.Apart()
	return s.hot == s.rows && s.rewrites == nil && (s.layout.device == 0 || apart)
}

// ReadBy has by read the static region itself from here on: see [Window.GatherTo]. It does nothing
// unless StaticAlone holds and Lock has locked the region. Nobody may gather meanwhile.
func (s *Stack) ReadBy(by kernels.HostGatherer) {
	if s.StaticAlone() && s.static.IsLocked() {
		s.reader = by
	}
}

// GatherTo is Gather to a tensor of the backend that reads the static region itself. It does not
// wait for that. ok is false if there is no such backend, or it cannot read these rows: Gather then
// copies them.
func (w *Window) GatherTo(ctx context.Context, i int, dst kernels.Tensor) (ok bool) {
	s := w.s
	if s.reader == nil {
		return false
	}
	s.gathering.Lock()
	defer s.gathering.Unlock()
	ids := w.beyond(i)
	_, done := s.begin(ctx, "Window.GatherTo")
	defer done()
	w.enter(i)
	p := &s.scratch
	p.fromRegion = p.fromRegion[:0]
	for _, v := range ids {
		p.fromRegion = append(p.fromRegion, v-uint32(s.layout.device))
	}
	static := s.static.Lend()
	defer s.static.Return()
	if !s.reader.GatherHost(dst, static, p.fromRegion) {
		return false
	}
	t := tally{static: int64(len(ids))}
	t.add(p.takeApart())
	if w.single {
		t.windows = 1
		w.forget()
	}
	t.add(w.came)
	w.came = tally{}
	s.count(t, 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	w.gather(i + 1)
	return true
}

// enter begins to gather step i, and panics if that may not be.
func (w *Window) enter(i int) {
	s := w.s
	s.mu.Lock()
	at, gathered := s.at(w), w.gathered
	early := at > 0 && w.single && !s.mu.windows[at-1].left
	w.gather(max(i, gathered))
	s.mu.Unlock()
	if at < 0 || !w.loaded || early {
		panic("cachetier: Window.Gather before Load, after Release, or before the release of the window before")
	}
	if i < gathered {
		panic("cachetier: Window.Gather of a step before one that was gathered")
	}
}
