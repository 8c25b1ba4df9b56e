package kernels

// NewTensor returns a tensor of zeros with a buffer of its own, which the caller frees.
func NewTensor(be Backend, t DType, rows, cols int) Tensor {
	return Tensor{Buf: be.Alloc(t, rows*cols), Type: t, Rows: rows, Cols: cols}
}

// FreeTensors frees the buffers of tensors; zero Tensors have none.
func FreeTensors(be Backend, tensors ...Tensor) {
	for _, t := range tensors {
		if t.Buf != nil {
			be.Free(t.Buf)
		}
	}
}

// GrowBuffer makes sure that *b has at least n elements. If it is nil or shorter, GrowBuffer frees
// it, with its contents, and allocates room elements.
func GrowBuffer(be Backend, b *Buffer, t DType, n, room int) {
	if *b == nil || (*b).Len() < n {
		FreeBuffers(be, b) // before Alloc may fail
		*b = be.Alloc(t, room)
	}
}

// FreeBuffers frees the buffers that are not nil, and sets them to nil.
func FreeBuffers(be Backend, buffers ...*Buffer) {
	for _, b := range buffers {
		if *b != nil {
			be.Free(*b)
			*b = nil
		}
	}
}
