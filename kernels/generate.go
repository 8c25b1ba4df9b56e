package kernels

// The assembly is generated, and committed so that a build needs no generator. tools/check -generated compares the two.

//go:generate go run -C _gen ./matmul -out ../matmul_amd64.s -stubs ../matmul_stubs_amd64.go -pkg kernels
//go:generate go run -C _gen ./peak -out ../peak_amd64.s -stubs ../peak_stubs_amd64.go -pkg kernels
