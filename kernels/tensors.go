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

// Grow makes b, which may be nil, at least n elements long. Where it is too short, what it held is
// lost, and the buffer in its place has room elements.
func Grow(be Backend, b *Buffer, t DType, n, room int) {
	if *b == nil || (*b).Len() < n {
		Drop(be, b) // before Alloc may fail
		*b = be.Alloc(t, room)
	}
}

// Drop frees buffers and sets them to nil, which some may be already.
func Drop(be Backend, buffers ...*Buffer) {
	for _, b := range buffers {
		if *b != nil {
			be.Free(*b)
			*b = nil
		}
	}
}
