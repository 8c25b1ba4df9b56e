package storetest

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"

	"github.com/gnnstore/gnnstore/store"
)

// Forge overwrites bytes at offset at of a section of the dataset at dir, and updates its page
// checksums. The dataset is then what a faulty or hostile program could have sealed: only checks of
// contents find the change, and verify, since the manifest keeps the hash of the old bytes.
func Forge(t testing.TB, dir, section string, at int64, b []byte) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, filepath.FromSlash(section)), os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	_, err = f.WriteAt(b, at)
	require.NoError(t, err)
	info, err := f.Stat()
	require.NoError(t, err)
	file := make([]byte, info.Size())
	_, err = f.ReadAt(file, 0)
	require.NoError(t, err)

	le, castagnoli := binary.LittleEndian, crc32.MakeTable(crc32.Castagnoli)
	header, payload := file[:store.PageSize], le.Uint64(file[0x10:])*le.Uint64(file[0x20:]) // FORMAT.md has the byte table
	end := store.PageSize + (payload+store.PageSize-1)/store.PageSize*store.PageSize
	pages, sums := file[store.PageSize:end], file[end:]
	for i := 0; i < len(pages); i += store.PageSize {
		le.PutUint32(sums[i/store.PageSize*4:], crc32.Checksum(pages[i:i+store.PageSize], castagnoli))
	}
	le.PutUint64(header[0x234:], xxh3.Hash(sums))
	le.PutUint32(header[store.PageSize-4:], crc32.Checksum(header[:store.PageSize-4], castagnoli))
	_, err = f.WriteAt(file, 0)
	require.NoError(t, err)
}
