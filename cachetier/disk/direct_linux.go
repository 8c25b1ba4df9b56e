package disk

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

const (
	// usualBlock is the alignment that O_DIRECT wants where the kernel does not say: no disk has
	// larger sectors.
	usualBlock = 4096
	// maxBlock is the largest that is followed: beyond, reading whole blocks wastes more than the
	// page cache costs.
	maxBlock = 64 << 10
)

// direct is files past the page cache (O_DIRECT), by descriptors of its own. The error says what
// stands against it.
func direct(files []store.SectionFile) (src source, err error) {
	src = source{files: files, block: store.PageSize}
	defer func() {
		if err != nil {
			src.closeOwn()
		}
	}()
	for i := range files {
		f, err := os.OpenFile(files[i].Path, os.O_RDONLY|unix.O_DIRECT, 0)
		if err != nil {
			return src, err
		}
		src.add(f)
		block, err := alignment(src.fds[i])
		if err == nil {
			err = sameFile(f, files[i].File)
		}
		if err != nil {
			return src, fmt.Errorf("%s: %w", files[i].Path, err)
		}
		src.block = max(src.block, block)
	}
	if len(files) == 0 {
		return src, nil
	}
	// Proof that this file system does it: some take the flag and refuse to read.
	b, err := kernels.NewHostBuf(max(int(src.block), usualBlock)) // smaller ones are not aligned to that
	if err != nil {
		return src, err
	}
	defer b.Close()
	if _, err := unix.Pread(src.fds[0], b.Bytes()[:src.block], 0); err != nil && !errors.Is(err, unix.EINTR) {
		return src, fmt.Errorf("%s: %w", files[0].Path, err)
	}
	return src, nil
}

// sameFile refuses a path that names another file by now than the one that is open: its bytes are
// not the dataset's.
func sameFile(now, held *os.File) error {
	a, err := now.Stat()
	if err != nil {
		return err
	}
	b, err := held.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(a, b) {
		return errors.New("replaced since the dataset was opened")
	}
	return nil
}

// alignment is what offsets, sizes and memory of direct reads must be multiples of: asked of the
// kernel, which tells since Linux 6.1, for most file systems.
func alignment(fd int) (int64, error) {
	var st unix.Statx_t
	err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &st)
	if err != nil || st.Mask&unix.STATX_DIOALIGN == 0 {
		return usualBlock, nil
	}
	block := int64(max(st.Dio_offset_align, st.Dio_mem_align, 512))
	if st.Dio_offset_align == 0 || block&(block-1) != 0 || block > maxBlock || st.Dio_mem_align > usualBlock {
		return 0, fmt.Errorf("direct reads need an alignment of %d bytes, and memory of %d", st.Dio_offset_align, st.Dio_mem_align)
	}
	return block, nil
}

// closeOwn closes what direct opened.
func (src *source) closeOwn() {
	for _, f := range src.open {
		_ = f.Close() // nothing was written
	}
	src.open, src.fds = nil, nil
}
