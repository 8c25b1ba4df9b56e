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
	// usualBlock is the alignment assumed for O_DIRECT where the kernel reports none: no disk has
	// larger sectors.
	usualBlock = 4096
	// maxBlock is the largest alignment accepted. Beyond it, reading whole blocks wastes more than
	// the page cache costs.
	maxBlock = 64 << 10
)

// direct opens files past the page cache (O_DIRECT), by descriptors of its own. The error says why
// that is not possible.
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
	// Try one read: some file systems accept the flag and then refuse to read.
	b, err := kernels.NewHostBuf(max(int(src.block), usualBlock)) // a smaller one might not be aligned to it
	if err != nil {
		return src, err
	}
	defer b.Close()
	if _, err := unix.Pread(src.fds[0], b.Bytes()[:src.block], 0); err != nil && !errors.Is(err, unix.EINTR) {
		return src, fmt.Errorf("%s: %w", files[0].Path, err)
	}
	return src, nil
}

// sameFile returns an error if now, which was opened by path, is another file than held. Its bytes
// are then not the dataset's.
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

// alignment returns the unit of direct reads in bytes: offsets, sizes and memory must be multiples
// of it. The kernel reports it since Linux 6.1, for most file systems; otherwise it is usualBlock.
// An alignment that reads here cannot keep is an error.
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

// closeOwn closes the files that direct opened.
func (src *source) closeOwn() {
	for _, f := range src.open {
		_ = f.Close() // nothing was written
	}
	src.open, src.fds = nil, nil
}
