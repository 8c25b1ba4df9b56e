//go:build !linux

package cli

import (
	"context"
	"errors"
	"os/exec"
)

// Cgroup is a memory control group of Linux: nil here, where there is none.
type Cgroup struct{}

// NewCgroup says that there is none.
func NewCgroup(string, int64) (*Cgroup, error) {
	return nil, errors.New("no memory cgroup: only Linux has them")
}

// Command runs name as it is.
func (*Cgroup) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, name, args...)
}

// Peak is unknown.
func (*Cgroup) Peak() (bytes, hits int64) { return 0, 0 }

// Close does nothing.
func (*Cgroup) Close() {}
