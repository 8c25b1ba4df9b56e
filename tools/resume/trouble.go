package resume

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/gnnstore/gnnstore/tools/cli"
)

// FullDisk trains in dir, on a small disk that fill takes all of and free gives back. The disk
// fills when the first checkpoint stands: the run must fail in a line that names the file and the
// way out, which FullDisk returns, leave what stood as it was, and go on to the end of the
// reference once there is room.
func (p *Prover) FullDisk(ctx context.Context, c Config, dir string, fill, free func() error) (message string, err error) {
	want, err := p.reference(ctx, c)
	if err != nil {
		return "", err
	}
	args := append(p.args(c, dir), "--log-every", "0") // or metrics.jsonl would be the first to find no room
	stop, err := when(dir, point{write: checkpointDir + "/*.safetensors", file: 1}, fill)
	if err != nil {
		return "", err
	}
	message, err = cli.Refused(p.Binary.Command(ctx, args...))
	if stopErr := stop(); stopErr != nil {
		return "", stopErr
	}
	if err != nil {
		return "", err
	}
	for _, part := range []string{filepath.Join(dir, cmp.Or(c.Full, checkpointDir)), "no space left on device", "--resume --run " + dir} {
		if !strings.Contains(message, part) {
			return "", fmt.Errorf("train on a disk that fills up: %q does not say %q", message, part)
		}
	}
	before, err := look(dir)
	if err != nil {
		return "", err
	}
	if len(before.checkpoints) == 0 || len(before.half) > 0 {
		return "", fmt.Errorf("train on a disk that fills up leaves checkpoints %d and half of %q: want a whole one, and no half",
			before.checkpoints, before.half)
	}
	if err := free(); err != nil {
		return "", err
	}
	printed, _, err := p.start(ctx, append(args, "--resume"), dir, point{}, nil)
	if err != nil {
		return "", err
	}
	after, err := look(dir)
	if err != nil {
		return "", err
	}
	if _, err := before.wentOn(after, false); err != nil {
		return "", err
	}
	got, err := readOutcome(printed, dir)
	if err != nil {
		return "", err
	}
	got.Steps = want.Steps // no steps are on record
	return message, got.differs(want)
}

// Twice starts runs in the directory of one that is at work. Both ways to start must be refused in
// a line, which Twice returns, and the run at work must not notice.
func (p *Prover) Twice(ctx context.Context, c Config) (messages []string, err error) {
	want, err := p.reference(ctx, c)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(p.Dir, c.Model+"-twice-")
	if err != nil {
		return nil, err
	}
	args := p.args(c, dir)
	printed, _, err := p.start(ctx, args, dir, point{step: c.Every + 1}, func(first *os.Process) (err error) {
		if err := first.Signal(syscall.SIGSTOP); err != nil { // so that it cannot end before it was disturbed
			return err
		}
		for _, more := range []string{"--seed=1", "--resume"} {
			message, refused := cli.Refused(p.Binary.Command(ctx, append(args, more)...))
			if err == nil && refused == nil && !strings.Contains(message, dir) {
				refused = fmt.Errorf("%q does not name %s", message, dir)
			}
			if err == nil {
				err = refused
			}
			messages = append(messages, message)
		}
		if cont := first.Signal(syscall.SIGCONT); err == nil {
			err = cont
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(messages) == 0 {
		return nil, fmt.Errorf("the first run in %s ended before a second could start", dir)
	}
	got, err := readOutcome(printed, dir)
	if err != nil {
		return nil, err
	}
	if err := got.differs(want); err != nil {
		return nil, fmt.Errorf("a second run in %s disturbs the first: %w", dir, err)
	}
	return messages, os.RemoveAll(dir)
}
