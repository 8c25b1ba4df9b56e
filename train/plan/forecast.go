package plan

import "github.com/gnnstore/gnnstore/cachetier"

// Reading estimates what a step reads from one table. Its JSON keys are stable.
type Reading struct {
	Type         string  `json:"type"` // of the nodes; of a table of edges its relation and name
	InputRows    float64 `json:"input_rows"`
	ColdRows     float64 `json:"cold_rows"`
	FeatureBytes float64 `json:"feature_bytes"`
	LoadSeconds  float64 `json:"load_seconds"`
}

// Reads estimates what a step reads in all. Its JSON keys are stable.
type Reads struct {
	InputRows     float64 `json:"input_rows"` // rows of tables
	ColdRows      float64 `json:"cold_rows"`  // of these, how many come from the disk
	MissRate      float64 `json:"miss_rate"`  // ColdRows ÷ InputRows
	FeatureBytes  float64 `json:"feature_bytes"`
	TopologyBytes float64 `json:"topology_bytes"` // of neighbour lists
}

// Add adds the reading of one table.
func (r *Reads) Add(t Reading) {
	r.InputRows += t.InputRows
	r.ColdRows += t.ColdRows
	r.FeatureBytes += t.FeatureBytes
	r.MissRate = r.ColdRows / max(r.InputRows, 1)
}

// ReadingOf returns the mean of a step for a table, by its forecast f over so many steps. InputRows
// is over all steps. The other fields are over the windows after the caches have filled (Warm), or
// over all windows where Warm has none.
func ReadingOf(table string, f cachetier.Forecast, steps int) Reading {
	cost := f.Warm
	if cost.Steps == 0 {
		cost = f.All
	}
	n := float64(max(cost.Steps, 1))
	return Reading{
		Type: table, InputRows: float64(f.InputRows) / float64(steps), ColdRows: float64(cost.Rows) / n, FeatureBytes: float64(cost.Bytes) / n,
		LoadSeconds: cost.Seconds / n,
	}
}

// Forecast counts the reads from each table for the drawn steps that are in no window yet, from
// empty caches. It cuts and keeps windows as Next and Keep do, and reads nothing. The last group
// has no later groups to look ahead to. Warm leaves out the oldest group.
func (p *Planner) Forecast() ([]cachetier.Forecast, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var tables []*cachetier.Simulation
	defer func() {
		for _, t := range tables {
			t.Close()
		}
	}()
	for _, t := range p.Tables {
		s, err := t.Simulate()
		if err != nil {
			return nil, err
		}
		tables = append(tables, s)
	}
	for _, g := range p.drawn {
		expect(tables, p.Types, g, nil)
	}
	f := make([]cachetier.Forecast, len(tables))
	for i, g := range p.drawn {
		for _, d := range g {
			reads := d.Batch.Reads()
			for t := range f {
				f[t].InputRows += int64(len(reads[p.Types[t]]))
			}
		}
		for n := 0; len(g) > 0; g = g[n:] {
			n = fit(tables, len(g))
			for t := range f {
				c := tables[t].Next(n)
				f[t].All.Add(c)
				if i > 0 {
					f[t].Warm.Add(c)
				}
			}
		}
	}
	return f, nil
}
