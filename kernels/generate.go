package kernels

// The assembly is generated, and committed so that a build needs no generator. tools/check
// -generated compares the two.

//go:generate go run -C _gen ./matmul -out ../matmul_amd64.s -stubs ../matmul_stubs_amd64.go -pkg kernels
//go:generate go run -C _gen ./bf16 -out ../matmul_bf16_amd64.s -stubs ../matmul_bf16_stubs_amd64.go -pkg kernels
//go:generate go run -C _gen ./peak -out ../peak_amd64.s -stubs ../peak_stubs_amd64.go -pkg kernels
//go:generate go run -C _gen ./aggregate -out ../aggregate_amd64.s -stubs ../aggregate_stubs_amd64.go -pkg kernels
//go:generate go run -C _gen ./scores -out ../scores_amd64.s -stubs ../scores_stubs_amd64.go -pkg kernels
//go:generate go run -C _gen ./distances -out ../distances_amd64.s -stubs ../distances_stubs_amd64.go -pkg kernels
//go:generate go run -C _gen ./half -out ../half_amd64.s -stubs ../half_stubs_amd64.go -pkg kernels
//go:generate go run -C _gen ./elementwise -out ../elementwise_amd64.s -stubs ../elementwise_stubs_amd64.go -pkg kernels
//go:generate go run -C _gen ./addedges -out ../addedges_amd64.s -stubs ../addedges_stubs_amd64.go -pkg kernels
//go:generate go run -C _gen ./dropout -out ../dropout_amd64.s -stubs ../dropout_stubs_amd64.go -pkg kernels
//go:generate go run -C _gen ./norm -out ../norm_amd64.s -stubs ../norm_stubs_amd64.go -pkg kernels
//go:generate go run -C _gen ./rownorms -out ../rownorms_amd64.s -stubs ../rownorms_stubs_amd64.go -pkg kernels
//go:generate go run -C _gen ./loss -out ../loss_amd64.s -stubs ../loss_stubs_amd64.go -pkg kernels
//go:generate go run -C _gen ./gelu -out ../gelu_amd64.s -stubs ../gelu_stubs_amd64.go -pkg kernels
//go:generate go run -C _gen ./copyrows -out ../copyrows_amd64.s -stubs ../copyrows_stubs_amd64.go -pkg kernels
//go:generate go run -C _gen ./cells -out ../cells_amd64.s -stubs ../cells_stubs_amd64.go -pkg kernels
//go:generate go run -C _gen ./timeencode -out ../timeencode_amd64.s -stubs ../timeencode_stubs_amd64.go -pkg kernels
