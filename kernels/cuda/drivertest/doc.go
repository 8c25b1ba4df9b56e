//go:build cuda && linux

// Package drivertest is a driver in Go for tests of the CUDA backend: [Device.Calls] fills
// driver.Calls with the functions of a GPU that is not there.
//
// It is as strict as the contract of the driver allows. Streams are lazy: what is queued runs when
// something waits for it, and the [Mode] decides what else runs by then. So where an event is
// missing, or page-locked memory is used again too early, results change. New device memory is
// filled with NaN, and ends at a page that faults. A call on a thread without a context is refused.
//
// A [Runner] runs the kernels: those compiled for the host (package clib), or the PTX (package
// interp). A Device counts its calls, and [Device.Fail] has one of them fail. It is safe for
// concurrent use. Start reading at [New].
package drivertest
