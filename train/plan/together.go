package plan

import "context"

// allOf reports whether ok holds on all workers. Without Config.Agree it returns ok.
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

// joinTogether decides, before the first draw of a range, whether it goes by horizons: if all
// workers can.
func (p *Planner) joinTogether(ctx context.Context) (err error) {
	f := &p.horizons
	if f.own {
		f.own = false
		f.on, err = p.allOf(ctx, f.on)
	}
	return err
}

// drawTogether draws the steps of a horizon with the other workers, group by group. Workers propose
// a size for each group, and take the smallest. A worker proposes no more than its memory holds,
// or than it thinks is left of its horizon. All horizons end with the same step: see add.
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
