package kernels

import ("testing";"fmt";"math")

func TestZZ(t *testing.T) {
	fmt.Println(SetsOf(BF16), WhyNotBF16())
	for _, set := range SetsOf(BF16) {
		c := NewCPU(CPUOptions{Threads: 2, Set: set, Products: BF16})
		for _, s := range [][3]int{{1,1,1},{16,16,32},{32,32,32},{33,40,65},{17,33,65},{300,20,33},{15,41,5003},{132,300,516},{65,131,129},{200,1433,30},{20,2000,2000}} {
			for kind := range 8 {
				checkWholeProduct(t, c, s[0],s[1],s[2], kind&1!=0, kind&2!=0, kind&4!=0)
			}
		}
		for range 3 { if p := routinesOf(set).peak; p != nil { fmt.Println(set, p()) } }
	}
	_ = math.Inf
}
