package run

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/dist"
)

// Ended reports whether err is only the end of ctx.
func Ended(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err())
}

// outside reports whether a read or an allocation failed, or another worker did. Running again may
// succeed, and as a rule no step is half done, since a step allocates, and hears of other workers,
// before it changes a weight.
func outside(err error) bool {
	var read *disk.ReadError
	var memory *kernels.MemoryError
	var worker *dist.WorkerError
	var late *dist.LateError
	return errors.As(err, &read) || errors.As(err, &memory) || errors.As(err, &worker) || errors.As(err, &late)
}

// lostDevice reports whether err is of a device that has failed, whose memory cannot be read any
// more.
func lostDevice(err error) bool {
	var device *kernels.DeviceError
	return errors.As(err, &device)
}

// cutShort returns the error of a run whose work ended with err. If ctx has ended, or the machine
// is to blame, it calls save, which writes a checkpoint, and the run may go on later. After an
// error of the machine it does not call save if torn is set: then a step is half done. Nor does it
// after an error of a device.
func (d *Dir) cutShort(ctx context.Context, r *Result, err error, torn bool, save func() error) error {
	again := "go on with gnnstore train {resume} {run} " + d.run()
	if d.of != "" { // worker 0 saves, if it can
		torn = true
	}
	switch {
	case Ended(ctx, err):
		r.Status = Interrupted
		return save()
	case lostDevice(err), outside(err) && torn:
		return fmt.Errorf("%w; %s, from the newest checkpoint", err, again)
	case outside(err) && save() == nil:
		return fmt.Errorf("%w; no step is lost: %s", err, again)
	}
	return err
}

// Fail writes the result of a run that ended with err; text is err's message for the record. It
// returns err, joined with an error of writing unless err is of a full disk.
func (d *Dir) Fail(r *Result, err error, text string) error {
	r.Status, r.Error = Failed, text
	if werr := d.WriteResult(r); !errors.Is(err, syscall.ENOSPC) { // a full disk is in err already
		err = errors.Join(err, werr)
	}
	return err
}
