package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// Cgroup is a memory control group, of either version; nil where there is none to be had.
type Cgroup struct {
	dir string
	v2  bool
}

// NewCgroup makes a group that holds what is in it, page cache included, to limit bytes.
func NewCgroup(name string, limit int64) (*Cgroup, error) {
	for _, c := range []Cgroup{
		{"/sys/fs/cgroup/memory/gnnstore-" + name, false},
		{"/sys/fs/cgroup/gnnstore-" + name, true},
	} {
		knob := "memory.limit_in_bytes"
		if c.v2 {
			knob = "memory.max"
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(c.dir), "cgroup.procs")); err != nil {
			continue
		}
		if err := os.Mkdir(c.dir, 0o755); err != nil && !os.IsExist(err) {
			return nil, fmt.Errorf("no memory cgroup (%w): as root it is held to its limit, here it is only watched", err)
		}
		if err := os.WriteFile(filepath.Join(c.dir, knob), []byte(strconv.FormatInt(limit, 10)), 0); err != nil {
			_ = os.Remove(c.dir)
			continue
		}
		return &c, nil
	}
	return nil, fmt.Errorf("no memory cgroup: the process is only watched")
}

// Command runs name inside the group from its first instruction on.
func (c *Cgroup) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	if c == nil {
		return exec.CommandContext(ctx, name, args...)
	}
	script := `echo $$ > "$0/cgroup.procs" && exec "$@"`
	return exec.CommandContext(ctx, "sh", append([]string{"-c", script, c.dir, name}, args...)...)
}

// Peak is the most memory the group has had, page cache included, and how often it ran into its
// limit.
func (c *Cgroup) Peak() (bytes, hits int64) {
	if c == nil {
		return 0, 0
	}
	if c.v2 {
		return c.number("memory.peak"), 0
	}
	return c.number("memory.max_usage_in_bytes"), c.number("memory.failcnt")
}

func (c *Cgroup) number(name string) int64 {
	b, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
	return n
}

// Close removes the group, whose processes have ended, or are about to: children may outlive their
// parent by a moment.
func (c *Cgroup) Close() {
	for i := 0; c != nil && i < 20; i++ {
		if err := os.Remove(c.dir); err == nil || os.IsNotExist(err) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}
