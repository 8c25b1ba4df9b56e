package kernels_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/kerneltest"
)

// lender is a remote backend that lends memory to be uploaded.
type lender struct {
	*kerneltest.RemoteBackend
	sent, refused int
}

func (l *lender) Stage(t kernels.Tensor) (b []byte, send func(ok bool)) {
	b = make([]byte, t.Len()*t.Type.Size())
	return b, func(ok bool) {
		if !ok {
			l.refused++
			return
		}
		l.sent++
		switch t.Type {
		case kernels.F32:
			v := make([]float32, t.Len())
			_, _ = binary.Decode(b, binary.LittleEndian, v)
			l.UploadF32(t, v)
		case kernels.F16:
			v := make([]uint16, t.Len())
			_, _ = binary.Decode(b, binary.LittleEndian, v)
			l.UploadHalf(t, v)
		case kernels.U32:
			v := make([]uint32, t.Len())
			_, _ = binary.Decode(b, binary.LittleEndian, v)
			l.UploadU32(t, v)
		}
	}
}

// TestStaging fills windows of buffers, small ones after large ones, where the host can address the
// memory and where it cannot.
func TestStaging(t *testing.T) {
	cpu := kernels.NewCPU(kernels.CPUOptions{})
	lent := &lender{RemoteBackend: kerneltest.Remote(cpu)}
	defer func() {
		require.Equal(t, 12, lent.sent)
		require.Equal(t, 1, lent.refused)
	}()
	for name, be := range map[string]kernels.Backend{
		"cpu": cpu, "remote": kerneltest.Remote(cpu), "reference": kernels.NewReference(), "lender": kernels.NewSizing(lent),
	} {
		open := kernels.HostBytes()
		s := kernels.NewStaging(be)
		floats, halves, ints := be.Alloc(kernels.F32, 40_002), be.Alloc(kernels.F16, 40_002), be.Alloc(kernels.U32, 40_002)
		for _, n := range []int{0, 1, 40_000, 7} {
			values, bits, ids := make([]float32, n), make([]uint16, n), make([]uint32, n)
			for i := range n {
				values[i], ids[i] = float32(i%1000), uint32(i*i)
			}
			kernels.Float32ToHalf(bits, values)
			window := func(b kernels.Buffer, t kernels.DType) kernels.Tensor {
				return kernels.Tensor{Buf: b, Type: t, Off: 1, Rows: n, Cols: 1}
			}
			whole := func(b kernels.Buffer, t kernels.DType) kernels.Tensor {
				return kernels.Tensor{Buf: b, Type: t, Rows: n + 2, Cols: 1}
			}
			encode := func(from any) func(b []byte) error {
				return func(b []byte) error {
					require.Len(t, b, binary.Size(from), name)
					_, err := binary.Encode(b, binary.LittleEndian, from)
					return err
				}
			}
			wide := kernels.Tensor{Buf: be.Alloc(kernels.F32, n+2), Rows: n + 2, Cols: 1}
			got, guarded := make([]float32, n+2), append(append([]float32{-1}, values...), -1)

			be.Fill(whole(floats, kernels.F32), -1)
			require.NoError(t, s.Fill(window(floats, kernels.F32), encode(values)))
			be.DownloadF32(got, whole(floats, kernels.F32))
			require.Equal(t, guarded, got, name)

			be.Fill(whole(floats, kernels.F32), -1)
			s.JoinF32(window(floats, kernels.F32), values[:n/3], nil, values[n/3:])
			be.DownloadF32(got, whole(floats, kernels.F32))
			require.Equal(t, guarded, got, name)

			one := kernels.Tensor{Buf: halves, Type: kernels.F16, Rows: 1, Cols: 1}
			be.UploadHalf(one, []uint16{0xbc00})
			one.Off = n + 1
			be.UploadHalf(one, []uint16{0xbc00})
			require.NoError(t, s.Fill(window(halves, kernels.F16), encode(bits)))
			be.Convert(wide, whole(halves, kernels.F16))
			be.DownloadF32(got, wide)
			require.Equal(t, guarded, got, name)

			all := make([]uint32, n+2)
			be.UploadU32(whole(ints, kernels.U32), all)
			s.JoinU32(window(ints, kernels.U32), ids[:n/2], ids[n/2:])
			be.DownloadU32(all, whole(ints, kernels.U32))
			require.Equal(t, append(append([]uint32{0}, ids...), 0), all, name)
			be.Free(wide.Buf)
		}
		broken := errors.New("broken on purpose")
		x := kernels.Tensor{Buf: halves, Type: kernels.F16, Rows: 2, Cols: 3}
		require.ErrorIs(t, s.Fill(x, func([]byte) error { return broken }), broken, name)
		require.Panics(t, func() { s.JoinU32(kernels.Tensor{Buf: ints, Type: kernels.U32, Rows: 3, Cols: 1}, []uint32{1, 2}) }, name)
		require.Panics(t, func() { s.JoinU32(kernels.Tensor{Buf: floats, Rows: 2, Cols: 1}, []uint32{1, 2}) }, name)
		for _, b := range []kernels.Buffer{floats, halves, ints} {
			be.Free(b)
		}
		s.Close()
		s.Close()
		require.Equal(t, open, kernels.HostBytes(), name)
	}
}
