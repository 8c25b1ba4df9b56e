package interp_test

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/gnnstore/gnnstore/kernels/cuda/interp"
	"github.com/gnnstore/gnnstore/kernels/cuda/ptx"
)

// A kernel that ships fills memory. The same call with one float too many fails, and the error has
// the place.
func ExampleKernel_Launch() {
	text, err := ptx.Source("elementwise")
	if err != nil {
		panic(err)
	}
	module, err := interp.Parse(string(text))
	if err != nil {
		panic(err)
	}
	memory := interp.NewMemory()
	dst, err := memory.Alloc(4 * 100)
	if err != nil {
		panic(err)
	}
	fill := func(n uint64) error { // fill(dst, n, v)
		params := binary.LittleEndian.AppendUint64(nil, dst)
		params = binary.LittleEndian.AppendUint64(params, n)
		params = binary.LittleEndian.AppendUint32(params, 0x3f800000) // 1.0
		return module.Kernel("fill").Launch(memory, [3]uint32{2, 1, 1}, [3]uint32{64, 1, 1}, 0, params)
	}
	fmt.Println(fill(100))
	bytes, err := memory.Bytes(dst+4*99, 4)
	fmt.Println(bytes, err)
	var e *interp.Error
	if errors.As(fill(101), &e) {
		fmt.Printf("%s: %v, block %v, thread %v:\n%s\n", e.Kernel, e.Err, e.Block, e.Thread, e.Detail)
	}
	// Output:
	// <nil>
	// [0 0 128 63] <nil>
	// fill: out of bounds, block [1 0 0], thread [36 0 0]:
	// 4 bytes at 0x700000000190, 0 past the end of the 400 bytes at 0x700000000000
}
