package driver_test

import (
	"fmt"

	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
)

// The arguments of a launch lie as the PTX of its kernel declares them. Then LaunchKernel takes p.
func ExampleParams() {
	const ptx = `.entry scale(.param .u64 x, .param .u8 clamp, .param .f32 factor, .param .u32 n) { ret; }`
	lists, err := driver.ParamLists(ptx)
	if err != nil {
		panic(err)
	}
	p, err := driver.NewParams()
	if err != nil {
		panic(err)
	}
	defer p.Close()
	p.Start(lists["scale"]).Ptr(0x7f0000001000).U8(1).F32(0.5).U32(3)
	fmt.Printf("% x\n", p.Bytes())
	// Output: 00 10 00 00 00 7f 00 00 01 00 00 00 00 00 00 3f 03 00 00 00
}
