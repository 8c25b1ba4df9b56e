package kernels

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// lockerOf is a Locker that notes what is locked. Calls that fails has refuse.
type lockerOf struct {
	locked  map[uintptr]int
	lock    error // of the next LockMemory
	unlock  error // of every unlock
	unlocks int
}

func (l *lockerOf) LockMemory(b []byte) (func() error, error) {
	if l.lock != nil {
		return nil, l.lock
	}
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	l.locked[at] = len(b)
	return func() error {
		l.unlocks++
		if l.unlock == nil {
			delete(l.locked, at)
		}
		return l.unlock
	}, nil
}

func (l *lockerOf) LockedSlots() Locked { return Locked{} }

// covers reports whether a byte of b is locked.
func (l *lockerOf) covers(b []byte) bool {
	from := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	for at, n := range l.locked {
		if from < at+uintptr(n) && at < from+uintptr(len(b)) {
			return true
		}
	}
	return false
}

// TestLock: memory is unlocked once, before the next NewHostBuf can have it.
func TestLock(t *testing.T) {
	l := &lockerOf{locked: map[uintptr]int{}}
	for _, bytes := range []int{pageSize, 64 << 10, 3 << 20} { // the first two go to the spare store
		h, err := NewHostBuf(bytes)
		require.NoError(t, err)
		require.False(t, h.IsLocked())
		require.NoError(t, h.Lock(l))
		require.True(t, h.IsLocked())
		require.True(t, l.covers(h.Bytes()[bytes-1:]))
		require.Panics(t, func() { h.Lock(l) })
		h.Close()
		require.Empty(t, l.locked)
		h.Close()
		h = newHostBuf(t, bytes)
		require.False(t, h.IsLocked())
		require.False(t, l.covers(h.Bytes()))
	}
	require.Equal(t, 3, l.unlocks)
	require.Error(t, newHostBuf(t, pageSize-1).Lock(l))
	require.Error(t, newHostBuf(t, 0).Lock(l))
}

// TestUnlockFails: memory that a device may still read is never used again, and stays counted.
func TestUnlockFails(t *testing.T) {
	const bytes = 64 << 10
	l := &lockerOf{locked: map[uintptr]int{}, unlock: errors.New("lost")}
	h, err := NewHostBuf(bytes)
	require.NoError(t, err)
	require.NoError(t, h.Lock(l))
	before := HostBytes()
	h.Close()
	require.Empty(t, h.Bytes())
	require.Equal(t, before, HostBytes())
	for range 20 {
		require.False(t, l.covers(newHostBuf(t, bytes).Bytes()))
	}
	require.Equal(t, 1, l.unlocks)
}

// TestLockAll: LockAll leaves buffers unlocked that the backend refuses, and returns the first
// reason.
func TestLockAll(t *testing.T) {
	l := &lockerOf{locked: map[uintptr]int{}}
	a, b, small := newHostBuf(t, 3*pageSize), newHostBuf(t, 2*pageSize), newHostBuf(t, 10)
	require.Equal(t, Locked{Bytes: int64(3 * pageSize), Of: int64(3 * pageSize)}, LockAll(l, a, nil, small))
	l.lock = errors.New("too much")
	got := LockAll(l, b)
	require.Equal(t, Locked{0, int64(2 * pageSize), "too much"}, got)
	require.False(t, b.IsLocked())
	l.lock = errors.New("still")
	require.Equal(t, Locked{0, int64(4 * pageSize), "too much"}, got.Add(LockAll(l, b)))
}
