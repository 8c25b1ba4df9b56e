package graphfile

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/flate"

	"github.com/gnnstore/gnnstore/ingest/archive"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/store"
)

// opener opens the text of a file. Errors of Read do not name the file.
type opener func() (io.ReadCloser, error)

// openFile opens a file that may be packed by gzip or zstd.
func openFile(name string) (io.ReadCloser, error) {
	f, err := lines.OpenAny(name)
	if err != nil {
		return nil, err
	}
	return unnamed{f, name + ": "}, nil
}

// unnamed removes the file's name from errors of Read. The caller adds the name.
type unnamed struct {
	io.ReadCloser
	name string
}

func (u unnamed) Read(b []byte) (int, error) {
	n, err := u.ReadCloser.Read(b)
	if err != nil && err != io.EOF {
		err = errors.New(strings.TrimPrefix(err.Error(), u.name))
	}
	return n, err
}

// findMatrix finds the matrix at a path: the file, or the one in an archive.
func findMatrix(name string) (opener, error) {
	f, err := openFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<10)
	head, _ := in.Peek(1 << 10)
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return findZipped(name)
	case lines.IsTar(head):
		return findTarred(name, in)
	}
	return func() (io.ReadCloser, error) { return openFile(name) }, nil
}

// onlyMatrix chooses the matrix among the names in an archive. Collections call it as its folder,
// and put vectors and coordinates of it beside it.
func onlyMatrix(name string, members []string) (string, error) {
	var matrices []string
	for _, m := range members {
		if !strings.HasSuffix(strings.ToLower(m), ".mtx") {
			continue
		}
		if matrices = append(matrices, m); strings.TrimSuffix(path.Base(m), path.Ext(m)) == path.Base(path.Dir(m)) {
			return m, nil
		}
	}
	switch len(matrices) {
	case 1:
		return matrices[0], nil
	case 0:
		return "", fmt.Errorf("%s: an archive without a file .mtx; unpack it and name what is inside", name)
	}
	return "", fmt.Errorf("%s: an archive with %d files .mtx (%q, %q and perhaps others); unpack it and name one", name, len(matrices), matrices[0], matrices[1])
}

// mostMembers bounds the names of an archive that are looked at.
const mostMembers = 1 << 12

func findTarred(name string, in io.Reader) (opener, error) {
	var members []string
	for t := tar.NewReader(in); len(members) < mostMembers; {
		h, err := t.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: truncated or damaged archive (%w); fetch it again", name, err)
		}
		if h.Typeflag == tar.TypeReg {
			members = append(members, h.Name)
		}
	}
	chosen, err := onlyMatrix(name, members)
	if err != nil {
		return nil, err
	}
	return func() (io.ReadCloser, error) {
		f, err := openFile(name)
		if err != nil {
			return nil, err
		}
		t := tar.NewReader(f)
		for {
			h, err := t.Next()
			if err != nil {
				f.Close()
				return nil, fmt.Errorf("%s: truncated or damaged archive (%w); fetch it again", name, err)
			}
			if h.Typeflag == tar.TypeReg && h.Name == chosen {
				return readCloser{t, f}, nil
			}
		}
	}, nil
}

func findZipped(name string) (opener, error) {
	open := func(choose func(z *zip.Reader) (io.ReadCloser, error)) (io.ReadCloser, error) {
		f, size, err := store.OpenSized(name)
		if err != nil {
			return nil, err
		}
		z, err := archive.NewReader(f, size)
		var r io.ReadCloser
		if err == nil {
			z.RegisterDecompressor(zip.Deflate, func(r io.Reader) io.ReadCloser { return flate.NewReader(r) })
			r, err = choose(z)
		}
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return readCloser{r, f}, nil
	}
	var members []string
	list, err := open(func(z *zip.Reader) (io.ReadCloser, error) {
		for _, m := range z.File[:min(len(z.File), mostMembers)] {
			members = append(members, m.Name)
		}
		return io.NopCloser(strings.NewReader("")), nil
	})
	if err != nil {
		return nil, err
	}
	list.Close()
	chosen, err := onlyMatrix(name, members)
	if err != nil {
		return nil, err
	}
	return func() (io.ReadCloser, error) {
		return open(func(z *zip.Reader) (io.ReadCloser, error) {
			i := slices.IndexFunc(z.File, func(m *zip.File) bool { return m.Name == chosen })
			if i < 0 {
				return nil, errors.New("the archive changed while it was read")
			}
			return z.File[i].Open()
		})
	}, nil
}
