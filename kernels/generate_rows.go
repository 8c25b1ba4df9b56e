package kernels

//go:generate go run -C _gen ./aggregate -out ../aggregate_amd64.s -stubs ../aggregate_stubs_amd64.go -pkg kernels
