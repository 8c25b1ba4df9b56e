//go:build !mpi || !linux

package dist

import "errors"

// hasMPI reports whether this program can be one of several processes.
const hasMPI = false

func openMPI(Options) (link, error) {
	return nil, errors.New("this program has no MPI: start gnnstore-mpi, which is built with -tags mpi")
}
