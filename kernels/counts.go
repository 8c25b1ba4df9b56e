package kernels

// Counts counts the work that the host has given a backend since it was opened. A training step
// should have few of each: a wait leaves the device idle, and a copy or a launch costs host time.
type Counts struct {
	Waits       int64 `json:"waits"`   // of the host for operations, after a Mark or in a download
	Uploads     int64 `json:"uploads"` // copies to the device
	UploadBytes int64 `json:"upload_bytes"`
	Launches    int64 `json:"launches"` // of kernels, sets of memory, and products by a library
}

// Sub returns c less what was counted before.
func (c Counts) Sub(b Counts) Counts {
	return Counts{c.Waits - b.Waits, c.Uploads - b.Uploads, c.UploadBytes - b.UploadBytes, c.Launches - b.Launches}
}

// Add returns the sum of both.
func (c Counts) Add(b Counts) Counts {
	return Counts{c.Waits + b.Waits, c.Uploads + b.Uploads, c.UploadBytes + b.UploadBytes, c.Launches + b.Launches}
}

// Counter is a [Backend] that counts. Counts is safe for concurrent use.
type Counter interface{ Counts() Counts }

// CountsOf returns the counts of a backend. ok is false if it does not count.
func CountsOf(be Backend) (c Counts, ok bool) {
	if counter, ok := under(be).(Counter); ok {
		return counter.Counts(), true
	}
	return c, false
}

// Named is a [Backend] that knows what the processor is called that it computes on.
type Named interface{ Device() string }

// DeviceName returns what the processor of a backend is called, or "" if the backend does not say.
func DeviceName(be Backend) string {
	if named, ok := under(be).(Named); ok {
		return named.Device()
	}
	return ""
}

// A Roomy backend has memory of its own, and knows how much of it the process can have in all.
type Roomy interface {
	Room() (bytes int64, err error)
}

// RoomOf returns that memory. ok is false for a backend that is not Roomy.
func RoomOf(be Backend) (bytes int64, ok bool, err error) {
	roomy, ok := under(be).(Roomy)
	if !ok {
		return 0, false, nil
	}
	bytes, err = roomy.Room()
	return bytes, true, err
}

// under returns the backend that computes for be.
func under(be Backend) Backend {
	if z, ok := be.(*Sizing); ok {
		return z.real
	}
	return be
}
