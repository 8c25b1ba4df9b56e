package npz

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"

	"github.com/klauspost/compress/flate"

	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/store"
)

// Archive is an npz file as arrays by key, for layouts that are made of such files. One goroutine
// uses it at a time, and may have many of its arrays open.
type Archive struct {
	*archive
	file *os.File
}

// OpenArchive opens a file and reads its directory.
func OpenArchive(path string) (*Archive, error) {
	f, size, err := store.OpenSized(path)
	if err != nil {
		return nil, err
	}
	a, err := openArchive(path, f, size)
	if err != nil {
		f.Close()
		return nil, err
	}
	return &Archive{archive: a, file: f}, nil
}

// Close closes the file. Arrays are closed before it.
func (a *Archive) Close() error { return a.file.Close() }

// Name is the path, as messages have it.
func (a *Archive) Name() string { return a.name }

// Keys returns the names of the arrays, in the order of the file. The slice is the caller's.
func (a *Archive) Keys() []string { return slices.Clone(a.keys) }

// Has reports whether there is such an array.
func (a *Archive) Has(key string) bool { return a.files[key] != nil }

// Header reads the form of an array, held against the size of its member. Errors are whole: they
// name the file.
func (a *Archive) Header(key string) (npy.Header, error) {
	h, err := a.header(key)
	if err != nil {
		return h, a.Fail(context.Background(), err, key)
	}
	return h, nil
}

// Open returns a function that opens an array as an npy file, from its first byte to where its
// checksum is compared. A deflated member is inflated a MiB ahead, in a goroutine that lasts until
// Close. A stored one is an io.Seeker instead, and its checksum is compared when it was read as a
// whole, by one body or by two that share it (see [npy.Pairs]): both come from one Open.
func (a *Archive) Open(key string) func() (io.ReadCloser, error) {
	f := a.files[key]
	if f == nil {
		panic("npz: no such key")
	}
	if f.Method != zip.Store {
		return func() (io.ReadCloser, error) {
			body, err := f.Open()
			if err != nil {
				return nil, err
			}
			return readAhead(body), nil
		}
	}
	first := &part{}
	return func() (io.ReadCloser, error) {
		raw, err := f.OpenRaw()
		if err != nil {
			return nil, err
		}
		in, ok := raw.(io.ReadSeeker)
		if !ok {
			return f.Open()
		}
		p := &part{in: in, file: f, first: first}
		if first.in == nil {
			*first = *p
			return first, nil
		}
		return p, nil
	}
}

// part is a stored member, or the end of it, being read.
type part struct {
	in       io.ReadSeeker
	file     *zip.File
	first    *part // the one that reads from the first byte; itself, or nil, when this is it
	from, to int64 // what was read
	sum      uint32
}

func (p *part) Read(b []byte) (int, error) {
	n, err := p.in.Read(b)
	p.sum = crc32.Update(p.sum, crc32.IEEETable, b[:n])
	p.to += int64(n)
	if err != io.EOF {
		return n, err
	}
	if uint64(p.to) != p.file.UncompressedSize64 {
		return n, io.ErrUnexpectedEOF
	}
	sum := p.sum
	if p.from > 0 {
		if p.first == nil || p.first.from != 0 || p.first.to != p.from {
			return n, io.EOF // nobody read what comes before
		}
		sum = joinSums(p.first.sum, p.sum, p.to-p.from)
	}
	if sum != p.file.CRC32 {
		return n, zip.ErrChecksum
	}
	return n, io.EOF
}

// Seek goes elsewhere; the checksum starts anew there, unless nothing was to be passed over.
func (p *part) Seek(offset int64, whence int) (int64, error) {
	at, err := p.in.Seek(offset, whence)
	if err == nil && at != p.to {
		p.from, p.to, p.sum = at, at, 0
	}
	return at, err
}

func (p *part) Close() error { return nil }

// joinSums is the CRC-32 of a text a and a text b of n bytes after it, from theirs: a's is moved on
// by n bytes of zeros, which is a product with x⁸ⁿ modulo the polynomial.
func joinSums(a, b uint32, n int64) uint32 {
	shift, power := uint32(1)<<31, uint32(1)<<23 // 1 and x⁸: the highest bit is the coefficient of 1
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			shift = multiply(shift, power)
		}
		power = multiply(power, power)
	}
	return multiply(a, shift) ^ b
}

// multiply is a product modulo CRC-32's polynomial.
func multiply(a, b uint32) (p uint32) {
	for ; a != 0; a <<= 1 {
		if a>>31 != 0 {
			p ^= b
		}
		b = b>>1 ^ crc32.IEEE&-(b&1)
	}
	return p
}

// maxVerified is the size of the largest array that is read through to explain an error: some
// seconds.
const maxVerified = 1 << 30

// Fail puts the file's name before an error about these arrays, and reports a damaged file as one:
// damage is the likeliest cause of nonsense in an array, so the checksums of arrays up to a GiB are
// compared first.
func (a *Archive) Fail(ctx context.Context, err error, keys ...string) error {
	var corrupt flate.CorruptInputError
	for _, cause := range []error{zip.ErrChecksum, zip.ErrFormat, io.ErrUnexpectedEOF, npy.ErrTruncated} {
		if errors.Is(err, cause) || errors.As(err, &corrupt) {
			return fmt.Errorf("%s: %s: damaged or truncated download (%w); fetch it again", a.name, keys[0], err)
		}
	}
	small := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return a.files[key].UncompressedSize64 > maxVerified })
	return a.fail(ctx, err, small...)
}
