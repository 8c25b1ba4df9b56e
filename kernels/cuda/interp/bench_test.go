package interp

import "testing"

// BenchmarkLaunch measures how many lane instructions a second the interpreter executes.
func BenchmarkLaunch(b *testing.B) {
	mem := NewMemory()
	alloc := func(n int) uint64 {
		addr, err := mem.Alloc(n)
		if err != nil {
			b.Fatal(err)
		}
		return addr
	}
	const rows, depth = 256, 256
	square := func() uint64 { return alloc(4 * rows * depth) }
	for _, c := range []struct {
		name, module, kernel string
		grid                 [3]uint32
		params               []any
	}{
		{"kernel=gemm", "gemm", "gemm", [3]uint32{4, 4, 1}, []any{square(), square(), square(), uint32(rows), uint32(rows), uint32(depth)}},
		{"kernel=axpy", "elementwise", "axpy", [3]uint32{64, 1, 1}, []any{square(), square(), float32(1), uint64(rows * depth)}},
		{"kernel=dropout", "elementwise", "dropout", [3]uint32{64, 1, 1}, []any{square(), square(), uint32(rows), uint32(depth), uint64(1), uint32(9), float32(1)}},
		{"kernel=sum_squares", "reduce", "sum_squares", [3]uint32{16, 1, 1}, []any{alloc(128), square(), uint64(rows * depth)}},
	} {
		b.Run(c.name, func(b *testing.B) {
			k := load(b, c.module).Kernel(c.kernel)
			config := Config{Grid: c.grid, Block: [3]uint32{256, 1, 1}, Params: pack(b, k, c.params...)}
			var total Counters
			for b.Loop() {
				counters, err := k.Run(mem, config)
				if err != nil {
					b.Fatal(err)
				}
				total.Add(counters)
			}
			b.ReportMetric(float64(total.Lanes)/b.Elapsed().Seconds()/1e6, "Mlanes/s")
		})
	}
}
