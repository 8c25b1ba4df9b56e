package kernels

import "io"

// Sizing wraps a Backend and computes nothing while it is dry. It still allocates, frees, uploads
// and downloads. So a dry step maps the memory that the step needs, and [HostBytes] counts it. The
// system gives little of it, since mapped memory that nobody writes to costs nothing. Use
// NewSizing.
type Sizing struct {
	Backend // real, or its Shapes
	real    Backend
}

// NewSizing returns a Sizing of be that computes.
func NewSizing(be Backend) *Sizing { return &Sizing{be, be} }

// SetDry makes z dry, or compute again. Nobody else may use z meanwhile.
func (z *Sizing) SetDry(dry bool) {
	z.Backend = z.real
	if dry {
		z.Backend = Shapes{z.real}
	}
}

// Close closes the backend, if it is an io.Closer.
func (z *Sizing) Close() error {
	if c, ok := z.real.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Dry reports whether z is dry.
func (z *Sizing) Dry() bool { return z.Backend != z.real }
