package kerneltest

import "github.com/gnnstore/gnnstore/kernels"

// Remote is be, but for its memory, which the host cannot address: as on a GPU, Host always says
// no.
func Remote(be kernels.Backend) kernels.Backend { return remote{be} }

type remote struct{ kernels.Backend }

// Host implements kernels.Backend.
func (remote) Host(kernels.Tensor) (b []byte, ok bool) { return nil, false }
