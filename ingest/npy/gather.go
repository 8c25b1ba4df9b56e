package npy

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
)

// sizes of a gather, in bytes.
type sizes struct {
	tile   int64 // put in order at a time: 128 KiB a column of 128
	window int64 // read at a time, and picked apart: stays in the second cache level
	gap    int64 // unwanted, and read through rather than read around: it costs no more than one more read
}

var standard = sizes{tile: 16 << 20, window: 2 << 20, gap: 16 << 10}

// gather gives the elements of a View in row-major order, as bytes. It fills a tile, a stretch of
// the output, after the order of the storage: windows of it are read once for each tile, front to
// back, and their elements go where they belong.
//
// A storage is read once when each tile's part of it is apart from the others', as in a matrix with
// its columns one behind the other; else once for every tile.
type gather struct {
	at     Storage
	sizes  sizes
	size   int64   // of an element
	outer  []axis  // walked one by one
	split  axis    // walked per by per: a tile is per of it, and all of the inner
	inner  []axis  // innermost last
	per    int64   // of split, in a tile
	width  int64   // elements in one of split
	index  []int64 // of the next tile, in outer
	next   int64   // of the next tile, in split
	start  int64   // of the next tile in the storage, less what next adds
	done   bool
	tile   []byte
	rest   []byte // of the tile, not given yet
	window []byte
	order  []axis
}

func newGather(v *View, axes []axis, s sizes) *gather {
	g := &gather{at: v.at, sizes: s, size: int64(v.Type.Size), width: 1, start: v.offset}
	p := len(axes) - 1
	for p > 0 && g.width*axes[p].n*g.size <= g.sizes.tile {
		g.width *= axes[p].n
		p--
	}
	g.outer, g.split, g.inner = axes[:p], axes[p], axes[p+1:]
	g.per = min(max(g.sizes.tile/g.size/g.width, 1), g.split.n)
	g.index = make([]int64, p)
	return g
}

func (g *gather) Read(b []byte) (int, error) {
	if len(g.rest) == 0 {
		if g.done {
			return 0, io.EOF
		}
		if err := g.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(b, g.rest)
	g.rest = g.rest[n:]
	return n, nil
}

// fill makes the next tile and steps past it.
func (g *gather) fill() error {
	n := min(g.per, g.split.n-g.next)
	if g.tile == nil {
		g.tile = make([]byte, g.per*g.width*g.size)
	}
	axes, out := make([]axis, 0, len(g.inner)+1), int64(1)
	for i := len(g.inner) - 1; i >= 0; i-- {
		axes = append(axes, axis{g.inner[i].n, g.inner[i].stride, out})
		out *= g.inner[i].n
	}
	axes = append(axes, axis{n, g.split.stride, out})
	slices.SortStableFunc(axes, func(a, b axis) int { return cmp.Compare(b.stride, a.stride) }) // as they lie in the storage
	if err := g.scatter(axes, g.start+g.next*g.split.stride, 0); err != nil {
		return err
	}
	g.rest = g.tile[:n*g.width*g.size]
	if g.next += n; g.next == g.split.n {
		g.next = 0
		g.step()
	}
	return nil
}

// step moves to the next index of the outer axes.
func (g *gather) step() {
	for i := len(g.outer) - 1; i >= 0; i-- {
		a := g.outer[i]
		g.index[i]++
		g.start += a.stride
		if g.index[i] < a.n {
			return
		}
		g.index[i] = 0
		g.start -= a.n * a.stride
	}
	g.done = true
}

// scatter reads the elements that the axes span from element src on, and puts them in the tile from
// element dst on.
func (g *gather) scatter(axes []axis, src, dst int64) error {
	window, width := max(g.sizes.window/g.size, 1), int64(1) // of what the axes after the first span
	for _, a := range axes[1:] {
		width += (a.n - 1) * a.stride
	}
	a := axes[0]
	m, apart := max(window/width, 1), true // m of the first go in one window, each read apart
	if width > window {
		m = 1
	} else if (a.stride-width)*g.size <= g.sizes.gap {
		if apart, m = false, a.n; a.stride > 0 {
			m = min(m, (window-width)/a.stride+1)
		}
	}
	defer func() { axes[0] = a }()
	for i := int64(0); i < a.n; i += m {
		var err error
		k, from, to := min(m, a.n-i), src+i*a.stride, dst+i*a.out
		switch {
		case width > window:
			err = g.scatter(axes[1:], from, to)
		case apart:
			axes[0] = axis{k, width, a.out}
			if err = g.readWindow(k, width, from, a.stride); err == nil {
				g.copyWindow(axes, to)
			}
		default:
			axes[0].n = k
			if err = g.readWindow(1, width+(k-1)*a.stride, from, 0); err == nil {
				g.copyWindow(axes, to)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readWindow reads k pieces of n elements, stride apart, one behind the other.
func (g *gather) readWindow(k, n, src, stride int64) error {
	if need := k * n * g.size; int64(len(g.window)) < need {
		g.window = make([]byte, max(need, min(2*need, g.sizes.window)))
	}
	for i := range k {
		w := g.window[i*n*g.size : (i+1)*n*g.size]
		at := (src + i*stride) * g.size
		if got, err := g.at.ReadAt(w, at); got < len(w) {
			if err == nil || err == io.EOF {
				err = fmt.Errorf("%w: it ends at byte %d of its data", ErrTruncated, at+int64(got))
			}
			return err
		}
	}
	return nil
}

// copyWindow puts the elements on the axes in the tile. They are walked in the tile's order, so
// that it is written in whole lines.
func (g *gather) copyWindow(axes []axis, dst int64) {
	g.order = append(g.order[:0], axes...)
	slices.SortStableFunc(g.order, func(a, b axis) int { return cmp.Compare(b.out, a.out) })
	g.copyAxes(g.order, g.window, g.tile[dst*g.size:])
}

func (g *gather) copyAxes(axes []axis, from, to []byte) {
	a := axes[0]
	if len(axes) > 1 {
		for i := range a.n {
			g.copyAxes(axes[1:], from[i*a.stride*g.size:], to[i*a.out*g.size:])
		}
		return
	}
	s, d, le := a.stride*g.size, a.out*g.size, binary.LittleEndian
	switch g.size {
	case 1:
		for i := range a.n {
			to[i*d] = from[i*s]
		}
	case 2:
		for i := range a.n {
			le.PutUint16(to[i*d:], le.Uint16(from[i*s:]))
		}
	case 4:
		for i := range a.n {
			le.PutUint32(to[i*d:], le.Uint32(from[i*s:]))
		}
	case 8:
		for i := range a.n {
			le.PutUint64(to[i*d:], le.Uint64(from[i*s:]))
		}
	default:
		for i := range a.n {
			copy(to[i*d:i*d+g.size], from[i*s:])
		}
	}
}
