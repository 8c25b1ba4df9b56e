package resume

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// watcher reports the files that a run creates, writes or moves into place, in that order. It never
// decides by the clock: the kernel's inotify reports each event. One goroutine may ask; close may
// come from another.
type watcher struct {
	fd    int // of file, whose Fd would make it blocking
	file  *os.File
	dir   string
	below map[int32]string // by watch: what stands before its names
	ahead []change         // read and not told yet
	buf   []byte
}

const watched = unix.IN_CREATE | unix.IN_MODIFY | unix.IN_MOVED_TO

// watch begins to watch a run directory, which must exist, and its checkpoints, which may come
// later.
func watch(dir string) (*watcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("inotify: %w", err)
	}
	w := &watcher{fd: fd, file: os.NewFile(uintptr(fd), "inotify"), dir: dir, below: map[int32]string{}, buf: make([]byte, 64<<10)}
	if err = w.add(""); err == nil {
		err = w.add(checkpointDir + "/")
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// add watches one more directory, the run's or one below it whose name ends with a slash.
func (w *watcher) add(below string) error {
	id, err := unix.InotifyAddWatch(w.fd, filepath.Join(w.dir, below), watched)
	if err != nil {
		return fmt.Errorf("inotify %s: %w", filepath.Join(w.dir, below), err)
	}
	w.below[int32(id)] = below
	return nil
}

// next waits for the next change. After close it returns os.ErrClosed.
func (w *watcher) next() (change, error) {
	for len(w.ahead) == 0 {
		n, err := w.file.Read(w.buf)
		if err != nil {
			return change{}, err
		}
		if err := w.decode(w.buf[:n]); err != nil {
			return change{}, err
		}
	}
	c := w.ahead[0]
	w.ahead = w.ahead[1:]
	return c, nil
}

// decode reads whole events: watch, mask, cookie, length of the name and the name, filled up with
// zeros.
func (w *watcher) decode(events []byte) error {
	for len(events) >= unix.SizeofInotifyEvent {
		field := func(i int) uint32 { return binary.NativeEndian.Uint32(events[4*i:]) }
		id, mask, size := int32(field(0)), field(1), unix.SizeofInotifyEvent+int(field(3))
		name, _, _ := bytes.Cut(events[unix.SizeofInotifyEvent:size], []byte{0})
		events = events[size:]
		if mask&unix.IN_Q_OVERFLOW != 0 {
			return errors.New("inotify lost events: raise fs.inotify.max_queued_events")
		}
		if mask&unix.IN_IGNORED != 0 {
			continue // the directory is gone
		}
		c := change{name: w.below[id] + string(name), created: mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0}
		w.ahead = append(w.ahead, c)
		if mask&unix.IN_ISDIR != 0 && c.created && c.name == checkpointDir {
			if err := w.add(c.name + "/"); err != nil {
				return err
			}
			// What came before the watch did; with bad luck its own event is to come, and it counts
			// twice. A file that has come and gone is missed. Either way a run is killed at another
			// write than was drawn, and where is printed.
			entries, err := os.ReadDir(filepath.Join(w.dir, c.name))
			if err != nil {
				return err
			}
			for _, e := range entries {
				w.ahead = append(w.ahead, change{name: c.name + "/" + e.Name(), created: true})
			}
		}
	}
	return nil
}

// close ends the watch, and wakes a next that waits.
func (w *watcher) close() error { return w.file.Close() }
