package kernels
import ("testing";"fmt")
func BenchmarkZZ(b *testing.B) {
	for _, x := range []struct{p Precision; s Set}{{BF16,AMX},{BF16,AVX512BF16},{Float32,AVX512}} {
		c := NewCPU(CPUOptions{Threads: 2, Set: x.s, Products: x.p})
		b.Run(fmt.Sprint("peak/",x.s), func(b *testing.B){ n:=0; for b.Loop() { n+=c.peak() }; b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e9,"GFLOPS/core") })
		for _, sh := range [][3]int{{8192,256,256},{65536,256,128},{8192,256,40},{8192,40,256},{16,256,256}} {
			m, n, k := sh[0], sh[1], sh[2]
			x, w, y := tensorOf(c, m, k, floatsFrom(1, m*k)), tensorOf(c, n, k, floatsFrom(2, n*k)), tensorOf(c, m, n, floatsFrom(3, m*n))
			for name, f := range map[string]func(){"x·wT": func() { c.MatMul(y,x,w,false,true,false)}, "dy·w": func(){c.MatMul(x,y,w,false,false,false)}, "dyT·x": func(){c.MatMul(w,y,x,true,false,false)}} {
				b.Run(fmt.Sprintf("%s/%v/%s", c.Name(), sh, name), func(b *testing.B) { for b.Loop() { f() }; b.ReportMetric(float64(b.N)*2*float64(m*n*k)/b.Elapsed().Seconds()/1e9, "GFLOPS") })
			}
		}
	}
}
