package kernels

import "fmt"

// Stager is a [Backend] that lends host memory from which it uploads directly, as a GPU does from
// page-locked memory. Stage may be called wherever an upload may.
type Stager interface {
	// Stage lends as many bytes as t has. The caller writes them and calls send once, which gives
	// them back. With ok, send begins their upload to t; without, t stays as it is.
	Stage(t Tensor) (b []byte, send func(ok bool))
}

// Staging fills tensors of a backend with what the host reads or puts together: straight in the
// backend's memory where Host lends it, else in what a [Stager] lends, else in a buffer on the host
// that is then uploaded at once. Use [NewStaging].
//
// Memory: a Staging owns its buffer, which grows to the largest tensor so far, until Close. The
// tensors are the caller's. Concurrency: one goroutine at a time, and beside operations as the
// uploads are: see [Backend].
type Staging struct {
	be   Backend
	host *HostBuf // nil until a tensor needs it
}

// NewStaging returns a Staging without a buffer.
func NewStaging(be Backend) *Staging { return &Staging{be: be} }

// Fill has write set the bytes of dst, all of them, in little-endian order. After an error of
// write, which it returns, what dst holds is not defined. Where there is no memory for the buffer
// it panics with a *MemoryError, as Alloc does.
func (s *Staging) Fill(dst Tensor, write func(b []byte) error) error {
	if !littleEndian {
		panic("kernels: Staging.Fill: this machine is not little-endian")
	}
	return s.fill(dst, write)
}

// fill is Fill in the host's byte order.
func (s *Staging) fill(dst Tensor, write func(b []byte) error) error {
	b, lent := s.be.Host(dst)
	if !lent && dst.Len() > 0 {
		if to, ok := under(s.be).(Stager); ok {
			return stage(to, dst, write)
		}
		b = s.buffer(dst)
	}
	if err := write(b); err != nil || lent || len(b) == 0 {
		return err
	}
	s.upload(dst, b)
	return nil
}

func stage(to Stager, dst Tensor, write func(b []byte) error) error {
	b, send := to.Stage(dst)
	sent := false
	defer func() {
		if !sent { // write has panicked
			send(false)
		}
	}()
	err := write(b)
	sent = true
	send(err == nil)
	return err
}

// Read has read see the bytes of src (F32), in little-endian order, and returns its error. They are
// lent for the call. It panics as Fill does.
func (s *Staging) Read(src Tensor, read func(b []byte) error) error {
	if !littleEndian {
		panic("kernels: Staging.Read: this machine is not little-endian")
	}
	if src.Type != F32 {
		panic(fmt.Sprintf("kernels: Staging.Read: src is %v, want F32", src.Type))
	}
	b, lent := s.be.Host(src)
	if !lent {
		b = s.buffer(src)
		s.be.DownloadF32(cast[float32](b), src)
	}
	return read(b)
}

// JoinU32 fills dst (U32) with the parts one behind the other, which are as long as dst together.
func (s *Staging) JoinU32(dst Tensor, parts ...[]uint32) { join(s, "JoinU32", dst, U32, parts) }

// JoinF32 is JoinU32 of an F32 tensor.
func (s *Staging) JoinF32(dst Tensor, parts ...[]float32) { join(s, "JoinF32", dst, F32, parts) }

func join[T float32 | uint32](s *Staging, op string, dst Tensor, want DType, parts [][]T) {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	checkLen(op, dst, n)
	if dst.Type != want {
		panic(fmt.Sprintf("kernels: %s: dst is %v, want %v", op, dst.Type, want))
	}
	_ = s.fill(dst, func(b []byte) error {
		all := cast[T](b)
		for _, p := range parts {
			all = all[copy(all, p):]
		}
		return nil
	})
}

// buffer lends as many bytes as t has.
func (s *Staging) buffer(t Tensor) []byte {
	n := t.Len() * t.Type.Size()
	if s.host == nil || len(s.host.Bytes()) < n {
		s.Close()
		host, err := NewHostBuf(n + n/8)
		if err != nil {
			panic(err)
		}
		s.host = host
	}
	return s.host.Bytes()[:n]
}

// upload takes b, in the host's byte order, to t.
func (s *Staging) upload(t Tensor, b []byte) {
	switch t.Type {
	case F32:
		s.be.UploadF32(t, cast[float32](b))
	case F16:
		s.be.UploadHalf(t, cast[uint16](b))
	case U32:
		s.be.UploadU32(t, cast[uint32](b))
	}
}

// Close gives the buffer back. The Staging can go on being used, and has a new one then.
func (s *Staging) Close() {
	if s.host != nil {
		s.host.Close()
		s.host = nil
	}
}
