package model

import (
	"fmt"
	"math"

	"github.com/gnnstore/gnnstore/train/sample"
)

// formulas computes the logits of a batch as the typed networks' formulas have them: node by node
// and edge by edge, in float64.
type formulas struct {
	Config
	*typedProblem
	params map[string][]float64
	held   *held // what is read of history; nil: nothing
}

// logits returns the logits of the seeds.
func (f formulas) logits() [][]float64 {
	x := make([][][]float64, len(f.Types)) // by type and node
	for t, ids := range f.batch.Inputs() {
		for i := range ids {
			row := f.params["inputs."+f.Types[t]+".row"]
			if f.In[t] > 0 {
				row = nil
				for _, v := range f.rows[t][i*f.In[t]:][:f.In[t]] {
					row = append(row, float64(v))
				}
			}
			if w := f.params["inputs."+f.Types[t]+".weight"]; w != nil {
				row = plus(times(w, row), f.params["inputs."+f.Types[t]+".bias"])
			}
			x[t] = append(x[t], row)
		}
	}
	for l := range f.batch.Layers {
		y := make([][][]float64, len(f.Types))
		for t, made := range f.Reach.Types[l+1] {
			for v := range f.batch.Layers[l].Nodes[t].Dst {
				if made {
					y[t] = append(y[t], f.row(l, t, v, x))
				}
			}
		}
		x = y
		if l < len(f.batch.Layers)-1 {
			for t := range x {
				x[t] = f.held.assemble(l, t, &f.batch.Layers[l+1].Nodes[t], x[t])
			}
		}
	}
	return x[0]
}

// row returns the row of node v of type t that layer l makes.
func (f formulas) row(l, t, v int, x [][][]float64) []float64 {
	y := f.before(l, t, v, x)
	if l == 0 && f.LabelInput > 0 {
		if labels := f.labelled(t, v); labels != nil {
			y = plus(y, labels)
		}
	}
	return f.ended(l, t, y)
}

// before is row before norm and activation, and without labels.
func (f formulas) before(l, t, v int, x [][][]float64) []float64 {
	if f.Kind == HGT {
		return f.transformed(l, t, v, x)
	}
	var y []float64
	if f.Kind == RGCN {
		y = plus(across(f.params[fmt.Sprintf("convs.%d.root", l)], x[t][v]), f.params[fmt.Sprintf("convs.%d.bias", l)])
	} else {
		name := fmt.Sprintf("skips.%d.%s.", l, f.Types[t])
		y = plus(times(f.params[name+"weight"], x[t][v]), f.params[name+"bias"])
	}
	drawn := 0
	for r, ends := range f.Relations {
		if !f.Reach.Relations[l][r] {
			continue
		}
		number := drawn
		drawn++
		if ends.Dst != t {
			continue
		}
		k := &f.batch.Layers[l].Blocks[r]
		rows, weights := f.neighbors(l, r, v, x)
		if len(rows) == 0 {
			continue
		}
		name := fmt.Sprintf("convs.%d.<%s>.", l, f.Relations[r].Name)
		switch f.Kind {
		case RSAGE:
			y = plus(y, times(f.params[name+"lin_l.weight"], average(rows, weights, k)))
			if w := f.params[name+"lin_edge.weight"]; w != nil {
				y = plus(y, times(w, average(f.edges(l, r, v), weights, k)))
			}
		case RGCN:
			y = plus(y, across(f.matrix(l, number, len(x[t][v])*len(y)), average(rows, weights, k)))
			if w := f.params[name+"edge"]; w != nil {
				y = plus(y, across(w, average(f.edges(l, r, v), weights, k)))
			}
		case RGAT:
			y = plus(y, f.attend(name, l, x[t][v], rows, weights, f.edges(l, r, v)))
		}
	}
	return y
}

// neighbors are the rows of v's neighbours in relation r, and what each counts.
func (f formulas) neighbors(l, r, v int, x [][][]float64) (rows [][]float64, weights []float64) {
	k := &f.batch.Layers[l].Blocks[r]
	for e := k.Start[v]; e < k.End[v]; e++ {
		rows = append(rows, x[f.Relations[r].Src][k.Nbr[e]])
		w := 1.0
		if len(k.Weight) > 0 {
			w = float64(k.Weight[e])
		}
		weights = append(weights, w)
	}
	return rows, weights
}

// edges are the values of v's edges in relation r, nothing each where there are none.
func (f formulas) edges(l, r, v int) (values [][]float64) {
	k, columns := &f.batch.Layers[l].Blocks[r], 0
	if len(f.Edges) > 0 {
		columns = f.Edges[r]
	}
	for e := k.Start[v]; e < k.End[v]; e++ {
		var row []float64
		for _, x := range k.Values[int(e)*columns:][:columns] {
			row = append(row, float64(x))
		}
		values = append(values, row)
	}
	return values
}

// ended is y as layer l ends for type t.
func (f formulas) ended(l, t int, y []float64) []float64 {
	if l == f.Layers-1 {
		return y
	}
	if f.Norm == "layer" {
		y = normalized(y, f.params[fmt.Sprintf("norms.%d.%s.weight", l, f.Types[t])], f.params[fmt.Sprintf("norms.%d.%s.bias", l, f.Types[t])])
	}
	for i, v := range y {
		if v < 0 && f.Kind == RGAT {
			y[i] = math.Expm1(v)
		} else {
			y[i] = max(v, 0)
		}
	}
	return y
}

// average is the mean of rows, by weights that add up to 1 where the block has some.
func average(rows [][]float64, weights []float64, k *sample.Block) []float64 {
	sum := make([]float64, len(rows[0]))
	for i, row := range rows {
		w := weights[i]
		if len(k.Weight) == 0 {
			w = 1 / float64(len(rows))
		}
		for c, v := range row {
			sum[c] += w * v
		}
	}
	return sum
}

// matrix returns the matrix of one relation of RGCN, of size elements: a row for each input.
func (f formulas) matrix(l, number, size int) []float64 {
	w := f.params[fmt.Sprintf("convs.%d.weight", l)]
	if f.Bases == 0 {
		return w[number*size:][:size]
	}
	sum, a := make([]float64, size), f.params[fmt.Sprintf("convs.%d.comp", l)][number*f.Bases:][:f.Bases]
	for b := range f.Bases {
		for i, v := range w[b*size:][:size] {
			sum[i] += a[b] * v
		}
	}
	return sum
}

// attend is the sum over one relation, by GAT's attention.
func (f formulas) attend(name string, l int, own []float64, rows [][]float64, weights []float64, edges [][]float64) (y []float64) {
	src, dst := f.params[name+"lin.weight"], f.params[name+"lin.weight"]
	if src == nil {
		src, dst = f.params[name+"lin_src.weight"], f.params[name+"lin_dst.weight"]
	}
	heads := f.Heads
	if l == f.Layers-1 {
		heads = 1
	}
	attSrc, attDst := f.params[name+"att_src"], f.params[name+"att_dst"]
	width := len(attSrc) / heads
	at := times(dst, own)
	y = make([]float64, len(attSrc))
	for h := range heads {
		total := 0.0
		for i, row := range rows {
			from, score := times(src, row), 0.0
			for c := h * width; c < (h+1)*width; c++ {
				score += from[c]*attSrc[c] + at[c]*attDst[c]
			}
			if w := f.params[name+"lin_edge.weight"]; w != nil {
				edge := times(w, edges[i])
				for c := h * width; c < (h+1)*width; c++ {
					score += edge[c] * f.params[name+"att_edge"][c]
				}
			}
			exp := weights[i] * math.Exp(max(score, float64(float32(attentionSlope))*score))
			total += exp
			for c := h * width; c < (h+1)*width; c++ {
				y[c] += exp * from[c]
			}
		}
		for c := h * width; c < (h+1)*width; c++ {
			y[c] /= total
		}
	}
	return y
}

// across is x·w, with a column of w for every number of the result.
func across(w, x []float64) []float64 {
	y := make([]float64, len(w)/len(x))
	for i, v := range x {
		for c := range y {
			y[c] += v * w[i*len(y)+c]
		}
	}
	return y
}

func plus(x, y []float64) []float64 {
	sum := make([]float64, len(x))
	for i := range x {
		sum[i] = x[i] + y[i]
	}
	return sum
}

// normalized is LayerNorm.
func normalized(x, gain, shift []float64) []float64 {
	mean, variance := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = (v-mean)/math.Sqrt(variance+float64(float32(1e-5)))*gain[i] + shift[i]
	}
	return y
}

// transformed is HGT's row of node v of type t, before norm and activation.
func (f formulas) transformed(l, t, v int, x [][][]float64) []float64 {
	name, heads, out := fmt.Sprintf("convs.%d.", l), f.Heads, f.Hidden
	width, drawn := out/heads, 0
	for _, is := range f.Reach.Relations[l] {
		if is {
			drawn++
		}
	}
	// part is head h of keys (0), queries (1) or values (2) of a row.
	part := func(i, h, kind int, row []float64) []float64 {
		key := name + "kqv_lin.lins." + f.Types[kind]
		all := plus(times(f.params[key+".weight"], row), f.params[key+".bias"])
		return all[i*out+h*width:][:width]
	}
	sum := make([]float64, out)
	for h := range heads {
		total, number := 0.0, 0
		for r, ends := range f.Relations {
			if !f.Reach.Relations[l][r] {
				continue
			}
			first := (h*drawn + number) * width * width // of the relation's matrices of this head
			number++
			if ends.Dst != t {
				continue
			}
			rows, weights := f.neighbors(l, r, v, x)
			for i, row := range rows {
				score := 0.0
				k := across(f.params[name+"k_rel.weight"][first:first+width*width], part(0, h, ends.Src, row))
				for c, q := range part(1, h, t, x[t][v]) {
					score += q * k[c]
				}
				factor := f.params[name+"p_rel."+[]string{"paper__cites__paper", "author__writes__paper", "venue__invites__author", "paper__in__venue",
					"ghost__haunts__paper", "paper__by__author", "author__reads__paper"}[r]][h]
				exp := weights[i] * math.Exp(factor*score/math.Sqrt(float64(width)))
				total += exp
				for c, m := range across(f.params[name+"v_rel.weight"][first:first+width*width], part(2, h, ends.Src, row)) {
					sum[h*width+c] += exp * m
				}
			}
		}
		for c := h * width; c < (h+1)*width && total > 0; c++ {
			sum[c] /= total
		}
	}
	for c, o := range sum {
		sum[c] = o * (1 + math.Erf(o/math.Sqrt2)) / 2
	}
	y := f.params[name+"out_lin.lins."+f.Types[t]+".bias"]
	if w := f.params[name+"out_lin.lins."+f.Types[t]+".weight"]; w != nil {
		y = plus(times(w, sum), y)
	}
	mixed, share := make([]float64, out), 1/(1+math.Exp(-f.params[name+"skip."+f.Types[t]][0]))
	for c := range mixed {
		mixed[c] = share*y[c] + (1-share)*x[t][v][c]
	}
	if l == f.Layers-1 {
		return plus(times(f.params["lin.weight"], mixed), f.params["lin.bias"])
	}
	return mixed
}
