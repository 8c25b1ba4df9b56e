package model

// asTheyAre is the network of Config.Layers 0. It returns the input rows of its seeds, after
// dropout in training. It has no parameters, and reads no neighbours.
var asTheyAre = network{alone: true, typed: true, newLayer: func(*declared, Config, place) layer { return noLayer{} }}

// network returns the network that c describes.
func (c Config) network() network {
	if c.Layers == 0 {
		return asTheyAre
	}
	return c.Kind.network()
}

// Reads reports whether the network reads neighbours.
func (c Config) Reads() bool { return !c.network().alone }

// Typed reports whether the network is for graphs of several types and relations.
func (c Config) Typed() bool { return c.network().typed }

type noLayer struct{}

func (noLayer) forward(s step, x Rows, g Graph) Rows {
	y := make(Rows, len(x))
	for t, v := range x {
		if v != nil {
			y[t] = s.t.Head(s.t.Convert(v), g.Nodes[t].Dst)
		}
	}
	return y
}
