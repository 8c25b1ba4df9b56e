package interp

import (
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAxpy(t *testing.T) {
	k := load(t, "elementwise").Kernel("axpy")
	everyOrder(t, func(t *testing.T, d *device, seed uint64) {
		const n = 1000 // 3 blocks of 64 go around it, and the last warps are partly idle
		x, y := normal(n, 1), normal(n, 2)
		at := put(d, y)
		require.NoError(t, d.launch(k, seed, 3, 64, at, put(d, x), float32(0.5), uint64(n)))
		for i, got := range get[float32](d, at, n) {
			require.Equal(t, float32(math.FMA(0.5, float64(x[i]), float64(y[i]))), got)
		}
	})
}

func TestHalves(t *testing.T) {
	k := load(t, "elementwise").Kernel("to_half")
	d := newDevice(t)
	src := []float32{0, 1, -1.5, 65504, 65519, 70000, -1e9, 1e-8, 6e-8, 3e-8, 2049, 2051, 0.1, float32(math.Inf(-1))}
	want := []uint16{0, 0x3c00, 0xbe00, 0x7bff, 0x7bff, 0x7bff, 0xfbff, 0, 1, 1, 0x6800, 0x6802, 0x2e66, 0xfbff}
	dst, flag := room[uint16](d, len(src)), put(d, []uint32{0})
	require.NoError(t, d.launch(k, 0, 1, 32, dst, put(d, src), flag, uint64(len(src))))
	require.Equal(t, want, get[uint16](d, dst, len(src)))
	require.Equal(t, []uint32{1}, get[uint32](d, flag, 1))
}

// Every half goes to a float and back as it was.
func TestEveryHalf(t *testing.T) {
	for h := range 1 << 16 {
		f := halfToFloat(uint16(h))
		switch {
		case f != f:
			require.Equal(t, uint16(nan16), floatToHalf(f, false))
		default:
			require.Equal(t, uint16(h), floatToHalf(f, false))
			require.Equal(t, uint16(h), floatToHalf(f, true))
		}
	}
	require.Equal(t, uint16(0x3c00), floatToHalf(1+0x1p-11, false)) // a tie goes to even
	require.Equal(t, uint16(0x3c02), floatToHalf(1+0x3p-11, false))
	require.Equal(t, uint16(0x3c01), floatToHalf(1+0x3p-11, true))
	require.Equal(t, uint16(0x7c00), floatToHalf(65520, false))
	require.Equal(t, uint16(0x7bff), floatToHalf(1e6, true))
}

// The approximations stay within their bounds, and tanh.approx is seen to be coarse.
func TestApproximations(t *testing.T) {
	k := load(t, "elementwise").Kernel("activations")
	d := newDevice(t)
	const n = 2000
	src := normal(n, 3)
	dst := room[float32](d, 4*n)
	require.NoError(t, d.launch(k, 1, 5, 256, dst, put(d, src), uint64(n)))
	got := get[float32](d, dst, 4*n)
	var worst float64
	for i, v := range src {
		x := float64(v)
		worst = max(worst, math.Abs(float64(got[4*i])/math.Tanh(x)-1))
		elu := x
		if x < 0 {
			elu = math.Expm1(x)
		}
		require.InDelta(t, elu, float64(got[4*i+1]), 1e-6)
		require.InDelta(t, math.Log1p(math.Exp2(x)-1+1)/math.Ln2, float64(got[4*i+2]), 1e-6)
		require.InDelta(t, 1/math.Sqrt(math.Abs(x)+1), float64(got[4*i+3]), 1e-6)
	}
	require.Less(t, worst, 0x1p-11+1e-6)
	require.Greater(t, worst, 0x1p-12)
}

func TestAdam(t *testing.T) {
	k := load(t, "elementwise").Kernel("adam")
	require.Equal(t, Param{"adam_param_6", "b8", 28, 4, 48}, k.Params[6])
	require.Equal(t, 76, k.ParamBytes)
	step := [7]float32{1e-2, 0.9, 0.999, 1e-8, 0.01, 0.1, 0.001}
	everyOrder(t, func(t *testing.T, d *device, seed uint64) {
		const n = 300
		p, g, m, v := normal(n, 1), normal(n, 2), normal(n, 3), normal(n, 4)
		for i := range v {
			v[i] *= v[i]
		}
		at := [4]uint64{put(d, p), put(d, g), put(d, m), put(d, v)}
		voided := uint32(seed & 1)
		require.NoError(t, d.launch(k, seed, 2, 128,
			at[0], at[1], at[2], at[3], uint64(n), put(d, []uint32{voided}), step))
		gotP, gotM := get[float32](d, at[0], n), get[float32](d, at[2], n)
		require.Equal(t, make([]float32, n), get[float32](d, at[1], n))
		for i := range p {
			if voided == 1 {
				require.Equal(t, p[i], gotP[i])
				continue
			}
			var s [7]float64
			for j := range s {
				s[j] = float64(step[j])
			}
			grad := float64(g[i]) + s[4]*float64(p[i])
			mean := s[1]*float64(m[i]) + (1-s[1])*grad
			square := s[2]*float64(v[i]) + (1-s[2])*grad*grad
			require.InDelta(t, mean, gotM[i], 1e-6)
			require.InDelta(t, float64(p[i])-s[0]*(mean/s[5])/(math.Sqrt(square/s[6])+s[3]), gotP[i], 1e-6)
		}
	})
}

func TestDropout(t *testing.T) {
	mix := func(x uint64) uint64 {
		x += 0x9e3779b97f4a7c15
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		return x ^ x>>31
	}
	k := load(t, "elementwise").Kernel("dropout")
	everyOrder(t, func(t *testing.T, d *device, seed uint64) {
		const rows, cols, key, threshold = 21, 19, 0x123456789abcdef, 20000
		src := normal(rows*cols, 5)
		dst := room[float32](d, rows*cols)
		require.NoError(t, d.launch(k, seed, 2, 96,
			dst, put(d, src), uint32(rows), uint32(cols), uint64(key), uint32(threshold), float32(1.5)))
		got := get[float32](d, dst, rows*cols)
		for r := range rows {
			for c := range cols {
				want := float32(0)
				if mix(key^mix(uint64(r)<<32|uint64(c/4)))>>(16*(c%4))&0xffff >= threshold {
					want = src[r*cols+c] * 1.5
				}
				require.Equal(t, want, got[r*cols+c])
			}
		}
	})
}

func TestIntegers(t *testing.T) {
	k := load(t, "elementwise").Kernel("integers")
	random := rand.New(rand.NewPCG(7, 7))
	a := []uint64{0, 1, 1 << 63, math.MaxUint64, 1 << 31, 0x8000_0000_8000_0000, math.MaxInt64}
	var x, y []uint64
	for _, p := range a {
		for _, q := range a {
			x, y = append(x, p), append(y, q)
		}
	}
	for range 500 {
		x, y = append(x, random.Uint64()), append(y, random.Uint64()>>random.Uint32N(64))
	}
	d := newDevice(t)
	dst := room[uint64](d, 24*len(x))
	require.NoError(t, d.launch(k, 1, 5, 256, dst, put(d, x), put(d, y), uint32(len(x))))
	got := get[uint64](d, dst, 24*len(x))
	signed := func(v int32) uint64 { return uint64(int64(v)) }
	for i := range x {
		x, y := x[i], y[i]
		product := new(big.Int).Mul(big.NewInt(int64(x)), big.NewInt(int64(y)))
		high, _ := bits.Mul64(x, y)
		abs := x
		if int64(x) < 0 {
			abs = -x
		}
		clamp := func(f float64) uint64 { // as cvt.rzi.u64 does
			if f >= 0x1p64 {
				return math.MaxUint64
			}
			return uint64(f)
		}
		clampSigned := func(f, half float64) uint64 {
			if f >= half {
				return uint64(half) - 1
			}
			return uint64(int64(f))
		}
		want := []uint64{
			x / (y | 1), uint64(int64(x) % int64(y|1)), uint64(uint32(x) / (uint32(y) | 1)),
			signed(int32(x) / (int32(y) | 1)), high, uint64(new(big.Int).Rsh(product, 64).Int64()),
			uint64(int64(x) >> (y & 63)), x << (y & 63),
			uint64(bits.OnesCount64(x)), uint64(bits.LeadingZeros64(x | 1)),
			uint64(bits.TrailingZeros64(x | 1<<63)), bits.Reverse64(x), uint64(int64(int8(x))),
			uint64(uint16(x) * uint16(y)),
			uint64(int64(int16(x) >> (y & 15))), uint64(bits.ReverseBytes32(uint32(x))),
			uint64(bits.RotateLeft32(uint32(x), int(y&31))),
			uint64(min(uint32(x), uint32(y))) | uint64(uint32(max(int32(x), int32(y))))<<32,
			clampSigned(float64(float32(int64(x))), 0x1p63), clamp(float64(x)),
			clampSigned(float64(float32(int32(y))), 0x1p31),
			x >> 7 & 0x1ff, abs, (x ^ y) &^ (x | 5),
		}
		require.Equal(t, want, got[24*i:24*i+24], "%#x %#x", x, y)
	}
}

func TestGatherHalves(t *testing.T) {
	k := load(t, "gather").Kernel("gather_half")
	require.Equal(t, 1, k.Instructions("ld.global.nc.v4"))
	everyOrder(t, func(t *testing.T, d *device, seed uint64) {
		const rows, cols, srcRows, bad = 37, 40, 11, 23
		src := make([]uint16, srcRows*cols)
		for i, v := range normal(len(src), 4) {
			src[i] = floatToHalf(float64(v), false)
		}
		ids := integers(rows, srcRows, 5)
		ids[bad] = srcRows // one that is not there
		dst, word := room[float32](d, rows*cols), put(d, []uint32{0, 0})
		require.NoError(t, d.launch(k, seed, (rows*32+255)/256, 256,
			dst, put(d, src), put(d, ids), word, uint32(rows), uint32(cols), uint32(srcRows)))
		got := get[float32](d, dst, rows*cols)
		for r := range rows {
			for c := range cols {
				if r == bad {
					require.True(t, math.IsNaN(float64(got[r*cols+c])), "the row is left as it was")
					continue
				}
				require.Equal(t, float32(halfToFloat(src[int(ids[r])*cols+c])), got[r*cols+c])
			}
		}
		require.Equal(t, []uint32{1, bad}, get[uint32](d, word, 2))
	})
}

func TestNeighbourMean(t *testing.T) {
	k := load(t, "gather").Kernel("mean")
	everyOrder(t, func(t *testing.T, d *device, seed uint64) {
		const rows, cols, srcRows = 29, 45, 17
		src := normal(srcRows*cols, 6)
		start, end := lists(rows, 9, 7)
		neighbours := integers(int(end[rows-1]), srcRows, 8)
		dst := room[float32](d, rows*cols)
		require.NoError(t, d.launch(k, seed, (rows*32+127)/128, 128,
			dst, put(d, src), put(d, start), put(d, end), put(d, neighbours), uint32(rows), uint32(cols)))
		got := get[float32](d, dst, rows*cols)
		for r := range rows {
			for c := range cols {
				sum, inverse := float32(0), float32(0)
				for e := start[r]; e < end[r]; e++ {
					sum += src[int(neighbours[e])*cols+c]
				}
				if end[r] > start[r] {
					inverse = 1 / float32(end[r]-start[r])
				}
				require.Equal(t, sum*inverse, got[r*cols+c])
			}
		}
	})
}

func TestEdgeSoftmax(t *testing.T) {
	k := load(t, "gather").Kernel("edge_softmax")
	everyOrder(t, func(t *testing.T, d *device, seed uint64) {
		const rows, heads = 21, 3
		start, end := lists(rows, 70, 9)
		edges := int(end[rows-1])
		scores := normal(edges*heads, 10)
		dst := room[float32](d, edges*heads)
		require.NoError(t, d.launch(k, seed, (rows*32+255)/256, 256,
			dst, put(d, scores), put(d, start), put(d, end), uint32(rows), uint32(heads)))
		got := get[float32](d, dst, edges*heads)
		for r := range rows {
			for h := range heads {
				sum := 0.0
				for e := start[r]; e < end[r]; e++ {
					sum += math.Exp(float64(scores[int(e)*heads+h]))
				}
				for e := start[r]; e < end[r]; e++ {
					require.InDelta(t, math.Exp(float64(scores[int(e)*heads+h]))/sum, got[int(e)*heads+h], 1e-6)
				}
			}
		}
	})
}

func TestSums(t *testing.T) {
	m := load(t, "reduce")
	everyOrder(t, func(t *testing.T, d *device, seed uint64) {
		const n, blocks, per = 2500, 3, 834
		x := normal(n, 11)
		part, squares, at := room[float32](d, blocks), room[float64](d, blocks), put(d, x)
		require.NoError(t, d.launch(m.Kernel("sum_f32"), seed, blocks, 256, part, at, uint64(n)))
		require.NoError(t, d.launch(m.Kernel("sum_squares"), seed, blocks, 256, squares, at, uint64(n)))
		gotPart, gotSquares := get[float32](d, part, blocks), get[float64](d, squares, blocks)
		for b := range blocks {
			// The same tree in Go.
			var s [256]float32
			var q [256]float64
			for i := b * per; i < min(b*per+per, n); i++ {
				s[(i-b*per)%256] += x[i]
				q[(i-b*per)%256] = math.FMA(float64(x[i]), float64(x[i]), q[(i-b*per)%256])
			}
			for half := 128; half > 0; half /= 2 {
				for i := range half {
					s[i] += s[i+half]
					q[i] += q[i+half]
				}
			}
			require.Equal(t, s[0], gotPart[b])
			require.Equal(t, q[0], gotSquares[b])
		}
	})
}

func TestScan(t *testing.T) {
	k := load(t, "reduce").Kernel("scan")
	everyOrder(t, func(t *testing.T, d *device, seed uint64) {
		const n = 600
		src := integers(n, 1000, 12)
		dst, totals := room[uint32](d, n), room[uint32](d, 3)
		require.NoError(t, d.launch(k, seed, 3, 256, dst, totals, put(d, src), uint32(n)))
		got, gotTotals := get[uint32](d, dst, n), get[uint32](d, totals, 3)
		sum := uint32(0)
		for i := range n {
			if i%256 == 0 {
				sum = 0
			}
			require.Equal(t, sum, got[i], i)
			sum += src[i]
			if i == n-1 || i%256 == 255 {
				require.Equal(t, sum, gotTotals[i/256])
			}
		}
	})
}

func TestWarps(t *testing.T) {
	k := load(t, "reduce").Kernel("warps")
	everyOrder(t, func(t *testing.T, d *device, seed uint64) {
		src := normal(256, 13)
		dst := room[uint32](d, 4*8)
		require.NoError(t, d.launch(k, seed, 2, 128, dst, put(d, src)))
		got := get[uint32](d, dst, 4*8)
		for w := range 8 {
			lane := append([]float32{}, src[32*w:32*w+32]...)
			positive := uint32(0)
			for l, v := range lane {
				if v > 0 {
					positive |= 1 << l
				}
			}
			middle := lane[16]
			for by := 16; by > 0; by /= 2 {
				before := append([]float32{}, lane...)
				for l := range 32 - by {
					lane[l] += before[l+by]
				}
			}
			require.Equal(t, []uint32{math.Float32bits(lane[0]), positive, 3, math.Float32bits(middle)}, got[4*w:4*w+4])
		}
	})
}

func TestDynamicSharedMemory(t *testing.T) {
	k := load(t, "reduce").Kernel("reverse")
	d := newDevice(t)
	const blocks, threads = 5, 96
	src := make([]byte, blocks*threads)
	for i, v := range integers(len(src), 256, 14) {
		src[i] = byte(v)
	}
	dst, counts := room[byte](d, len(src)), room[uint32](d, blocks)
	params := pack(t, k, dst, put(d, src), counts)
	grid, block := [3]uint32{blocks, 1, 1}, [3]uint32{threads, 1, 1}
	require.NoError(t, k.Launch(d.mem, grid, block, threads, params))
	got, gotCounts := get[byte](d, dst, len(src)), get[uint32](d, counts, blocks)
	for b := range blocks {
		large := 0
		for i := range threads {
			require.Equal(t, src[b*threads+threads-1-i], got[b*threads+i])
			if src[b*threads+i] > 100 {
				large++
			}
		}
		require.EqualValues(t, large*[]int{3, 5, 7, 11}[b%4], gotCounts[b])
	}
	require.ErrorIs(t, k.Launch(d.mem, grid, block, threads-1, params), ErrBounds)
}

func TestGEMM(t *testing.T) {
	k := load(t, "gemm").Kernel("gemm")
	require.Equal(t, 2, k.Instructions("ld.global.nc.v4"))
	require.Equal(t, 32, k.Instructions("ld.shared.v4"))
	everyOrder(t, func(t *testing.T, d *device, seed uint64) {
		const m, n, depth = 70, 83, 20
		a, b := normal(m*depth, 15), normal(n*depth, 16)
		c := room[float32](d, m*n)
		_, err := k.Run(d.mem, Config{
			Grid: [3]uint32{2, 2, 1}, Block: [3]uint32{256, 1, 1}, Seed: seed,
			Params: pack(t, k, c, put(d, a), put(d, b), uint32(m), uint32(n), uint32(depth)),
		})
		require.NoError(t, err)
		got := get[float32](d, c, m*n)
		for i := range m {
			for j := range n {
				var sum float32
				for l := range depth {
					sum = float32(math.FMA(float64(a[i*depth+l]), float64(b[j*depth+l]), float64(sum)))
				}
				require.InDelta(t, sum, got[i*n+j], 1e-6)
			}
		}
	})
}

func TestCalls(t *testing.T) {
	k := load(t, "calls").Kernel("polynomial")
	require.Equal(t, 3*4, k.Instructions("call"))
	horner := func(x float32, terms int) float32 {
		sum := float32(0)
		for i := terms; i > 0; i-- {
			sum = float32(math.FMA(float64(sum), float64(x), float64(1/float32(i))))
		}
		return sum
	}
	everyOrder(t, func(t *testing.T, d *device, seed uint64) {
		const n = 200
		src := normal(n, 17)
		dst := room[float32](d, n)
		require.NoError(t, d.launch(k, seed, 2, 128, dst, put(d, src), uint32(n)))
		for i, got := range get[float32](d, dst, n) {
			want := horner(src[i], 5) - horner(src[i]*0.5, i&7)
			if src[i] < 0 {
				want = horner(-src[i], 1+i&3)
			}
			require.Equal(t, want, got, i)
		}
	})
}

func TestLocalMemory(t *testing.T) {
	k := load(t, "calls").Kernel("median")
	d := newDevice(t)
	const n = 100
	src := normal(9*n, 18)
	dst := room[float32](d, n)
	require.NoError(t, d.launch(k, 1, 1, 128, dst, put(d, src), uint32(n)))
	for i, got := range get[float32](d, dst, n) {
		less := 0
		for _, v := range src[9*i : 9*i+9] {
			if v < got {
				less++
			}
		}
		require.Equal(t, 4, less)
		require.Contains(t, src[9*i:9*i+9], got)
	}
}

func TestAtomics(t *testing.T) {
	k := load(t, "calls").Kernel("atomics")
	everyOrder(t, func(t *testing.T, d *device, seed uint64) {
		const n = 1000
		src := integers(n, 1<<31, 19)
		counts, sum := put(d, make([]uint32, 16)), put(d, []uint64{0})
		least, most, last := put(d, []int32{math.MaxInt32}), put(d, []uint32{0}), put(d, []uint32{n})
		require.NoError(t, d.launch(k, seed, 3, 128, counts, sum, least, most, last, put(d, src), uint32(n)))
		want, wantSum, wantLeast, wantMost := make([]uint32, 16), uint64(0), src[0], uint32(0)
		for _, v := range src {
			want[v&15]++
			wantSum += uint64(v)
			wantLeast, wantMost = min(wantLeast, v), max(wantMost, v)
		}
		require.Equal(t, want, get[uint32](d, counts, 16))
		require.Equal(t, []uint64{wantSum}, get[uint64](d, sum, 1))
		require.Equal(t, []uint32{wantLeast}, get[uint32](d, least, 1))
		require.Equal(t, []uint32{wantMost}, get[uint32](d, most, 1))
		require.Less(t, get[uint32](d, last, 1)[0], uint32(n))
	})
}

func TestComparisons(t *testing.T) {
	k := load(t, "calls").Kernel("compare")
	nan, inf := math.NaN(), math.Inf(1)
	odd := []float64{0, math.Copysign(0, -1), 1, 1.5, -2, nan, inf, -inf}
	var a []float32
	var b []float64
	for _, x := range odd {
		for _, y := range odd {
			a, b = append(a, float32(x), float32(y)), append(b, y, x)
		}
	}
	n := len(a) / 2
	d := newDevice(t)
	dst := room[uint32](d, n)
	require.NoError(t, d.launch(k, 0, 1, 64, dst, put(d, a), put(d, b), uint32(n)))
	larger := func(x, y float64) float64 { // fmax
		if x != x || x < y {
			return y
		}
		return x
	}
	for i, got := range get[uint32](d, dst, n) {
		x, y, p, q := float64(a[2*i]), float64(a[2*i+1]), b[2*i], b[2*i+1]
		unordered := x != x || y != y
		for at, holds := range []bool{
			x < y, x <= y, x == y, x != y, !(x < y), !(x >= y), !(x == y), unordered,
			p < q, !(p > q), !unordered, p == q && x != y, larger(x, y) == x, -larger(-p, -q) == q,
			math.Floor(x) == x, math.RoundToEven(p) == p,
		} {
			require.Equal(t, holds, got>>at&1 == 1, "bit %d of %g %g", at, x, y)
		}
	}
}

// fma32 rounds once: it agrees with arithmetic of any precision.
func TestFusedMultiplyAdd(t *testing.T) {
	random := rand.New(rand.NewPCG(20, 20))
	for range 200000 {
		var v [3]float32
		for i := range v {
			exponent := 100 + random.Uint32N(56)
			if random.Uint32N(8) == 0 {
				exponent = random.Uint32N(40) // results that are subnormal
			}
			mantissa := random.Uint32() & 0x7fffff
			if random.Uint32N(2) == 0 {
				mantissa &= 0x7ff000 // ties
			}
			v[i] = math.Float32frombits(random.Uint32()&1<<31 | exponent<<23 | mantissa)
		}
		exact := new(big.Float).SetPrec(1000).SetFloat64(float64(v[0]))
		exact.Mul(exact, big.NewFloat(float64(v[1])))
		exact.Add(exact, big.NewFloat(float64(v[2])))
		want, _ := exact.Float32()
		got := fma32(bits32(v[0]), bits32(v[1]), bits32(v[2]))
		require.Equal(t, want, float32of(got), "%g %g %g", v[0], v[1], v[2])
	}
}
