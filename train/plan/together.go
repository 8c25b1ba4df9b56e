package plan

import "context"

// allOf reports whether a condition holds for all workers that draw together, ok for this one. A
// worker that draws alone has none to ask.
func (p *Planner) allOf(ctx context.Context, ok bool) (bool, error) {
	if p.Agree == nil {
		return ok, nil
	}
	own := 0
	if ok {
		own = 1
	}
	n, err := p.Agree(ctx, own)
	return n == 1, err
}

// joinTogether has the workers that draw together decide whether a range goes by horizons, before
// its first draw.
func (p *Planner) joinTogether(ctx context.Context) (err error) {
	f := &p.horizons
	if f.own {
		f.own = false
		f.on, err = p.allOf(ctx, f.on)
	}
	return err
}

// drawTogether draws the steps of a horizon with the other workers, group by group. No worker draws
// more steps than another thinks that its horizon has, and all end with the same step: see add.
func (p *Planner) drawTogether(ctx context.Context, g *preparing) error {
	for more := true; more; {
		n, err := p.Agree(ctx, max(0, min(p.farGroup(), p.thought(g)-(g.h.to-g.h.from))))
		if err != nil || n == 0 {
			return err
		}
		if more, err = p.drawSome(ctx, g, n); err != nil {
			return err
		}
	}
	return nil
}
