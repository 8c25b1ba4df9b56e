package extsort

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Small buckets share files. Each relation has several buckets, and there may be thousands of
// relations with a few edges each. A file for each bucket costs some 4 ms: to make, to sync and to
// remove it.

const (
	// packedBytes is the size of the largest bucket that shares a file.
	packedBytes = 64 << 10
	// packShare buckets of that size fill a file.
	packShare  = 16
	packPrefix = "pack-"
)

// packs has the files that small buckets share. The newest file fills in memory. It is written when
// it is full, and when finished buckets must become durable.
type packs struct {
	mu      sync.Mutex
	live    map[string]int // buckets in each file that are not removed
	name    string         // of the newest, "" before the first
	number  int            // of the newest
	filling []byte         // the content of the newest
	written int            // bytes of filling that are in the file, and synced
}

// pack appends a bucket of records to the newest pack.
func (a *Area) pack(records []byte) (Bucket, error) {
	p := &a.packs
	p.mu.Lock()
	defer p.mu.Unlock()
	size := packShare * a.packedBytes()
	if p.name != "" && len(p.filling)+len(records) > size {
		if err := a.writePack(); err != nil {
			return Bucket{}, err
		}
		p.name = ""
	}
	if p.name == "" {
		if p.filling == nil {
			p.filling = make([]byte, 0, size)
		}
		p.number++
		p.name, p.filling, p.written = packPrefix+strconv.Itoa(p.number), p.filling[:0], 0
	}
	b := Bucket{Name: p.name, At: int64(len(p.filling)), Bytes: int64(len(records)), Packed: true}
	p.filling = append(p.filling, records...)
	p.live[p.name]++
	return b, nil
}

func (a *Area) packedBytes() int {
	if a.Packed > 0 {
		return a.Packed
	}
	return packedBytes
}

// writePack makes the newest pack durable. The caller holds the lock of packs.
func (a *Area) writePack() error {
	p := &a.packs
	if p.name == "" || p.written == len(p.filling) || p.live[p.name] == 0 {
		return nil
	}
	for len(p.filling)%sector != 0 { // no sector that is synced is written again
		p.filling = append(p.filling, 0)
	}
	f, err := a.fs.OpenReadWrite(a.path(p.name), vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("write to spill directory: %w", err)
	}
	n, err := f.WriteAt(p.filling[p.written:], int64(p.written))
	a.written.Add(int64(n))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write to spill directory: %w", err)
	}
	p.written = len(p.filling)
	return nil
}

// loadPacked copies bytes of a packed bucket, from offset at on, to dst. It returns false if the
// pack is not in memory.
func (a *Area) loadPacked(b Bucket, at int64, dst []byte) bool {
	p := &a.packs
	p.mu.Lock()
	defer p.mu.Unlock()
	if b.Name != p.name {
		return false
	}
	copy(dst, p.filling[b.At+at:])
	return true
}

// removePacked removes a packed bucket. With the last bucket of a file it removes the file.
func (a *Area) removePacked(b Bucket) error {
	p := &a.packs
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live[b.Name]--; p.live[b.Name] > 0 {
		return nil
	}
	delete(p.live, b.Name)
	if b.Name == p.name {
		p.name = ""
		if p.written == 0 {
			return nil // there is no file
		}
	}
	return a.fs.Remove(a.path(b.Name))
}

// retain counts again which buckets are in which file, after a restart.
func (p *packs) retain(buckets []Bucket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.live)
	p.name = ""
	for _, b := range buckets {
		if b.Packed {
			p.live[b.Name]++
			if n, err := strconv.Atoi(strings.TrimPrefix(b.Name, packPrefix)); err == nil {
				p.number = max(p.number, n)
			}
		}
	}
}
