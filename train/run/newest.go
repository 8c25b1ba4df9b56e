package run

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"

	"github.com/gnnstore/gnnstore/train/checkpoint"
)

// LoadLatest reads the newest checkpoint, for callers that use its weights, and returns its name. A
// newest one that is damaged or missing is an error; with older it is a note, and the newest
// readable one is loaded.
func (d *Dir) LoadLatest(older bool, note func(format string, args ...any)) (name string, s *checkpoint.State, err error) {
	const remedy = "; {older_checkpoint} takes weights of an earlier step"
	pass := func(why error) error {
		if !older {
			return fmt.Errorf("%w%s", why, remedy)
		}
		note("%v; passing it over", why)
		return nil
	}
	switch name, s, err = d.LoadNewest(pass); {
	case err != nil:
		return "", nil, err
	case s == nil && d.Record().Options.Epochs == 0 && d.Newest() == "":
		return "", nil, fmt.Errorf("run %s: it was started with {epochs} 0, so it has no checkpoint; train it with gnnstore train {resume} {run} %s {epochs} N",
			d.path, d.path)
	case s == nil:
		return "", nil, fmt.Errorf("run %s: it has no checkpoint yet that can be read; the first one is written after an epoch", d.path)
	}
	have, _ := strconv.Atoi(s.Meta[stepsKey])
	if ended := d.endedAfter(); ended > have {
		if err := pass(fmt.Errorf("run %s: its newest checkpoint is gone: the run ended after %d updates, and %s is of %d", d.path, ended, name, have)); err != nil {
			return "", nil, err
		}
	}
	return name, s, nil
}

// endedAfter returns the updates that a run had made when it ended, or 0 if unknown.
func (d *Dir) endedAfter() int {
	if r, err := readResult(d.fs, d.path); err != nil || r.Status == Failed {
		return 0 // it goes on, or was cut short
	}
	_, meta, err := checkpoint.Load(d.fs, d.File(LastFile))
	if err != nil {
		return 0
	}
	updates, _ := strconv.Atoi(meta[stepsKey])
	return updates
}

// LoadNewest reads the newest whole checkpoint, and returns its name as Checkpoints has it. s is
// nil without any. passed gets the reason for each newer one that is not whole, and its error
// ends the search.
func (d *Dir) LoadNewest(passed func(why error) error) (name string, s *checkpoint.State, err error) {
	names, err := d.Checkpoints()
	if err != nil {
		return "", nil, err
	}
	for _, name := range slices.Backward(names) {
		tensors, meta, err := checkpoint.Load(d.fs, d.File(name))
		if errors.Is(err, fs.ErrNotExist) { // a run at work removed it, and has newer ones
			if now, lerr := d.Checkpoints(); lerr == nil && !slices.Contains(now, name) {
				return d.LoadNewest(passed)
			}
		}
		if err == nil {
			return name, &checkpoint.State{Tensors: tensors, Meta: meta}, nil
		}
		if errors.Is(err, fs.ErrPermission) {
			return "", nil, err // the file may be whole, and a run that went on from another would remove it
		}
		if err := passed(err); err != nil {
			return "", nil, err
		}
	}
	return "", nil, nil
}

// Resume has load go on from the newest checkpoint that is whole. Then it removes newer
// checkpoints, all but the newest keep, and half-written files. It returns the checkpoints that are
// left, the oldest first: none where the run starts at step 0. note gets messages for the user.
func (d *Dir) Resume(keep int, note func(format string, args ...any), load func(s *checkpoint.State) error) (left []string, err error) {
	if d.found != "" {
		note("%s", d.found)
	}
	if err := d.removeHalves(); err != nil {
		return nil, err
	}
	name, s, err := d.LoadNewest(func(why error) error {
		note("%v; passing it over", why)
		return nil
	})
	if err != nil {
		return nil, err
	}
	names, err := d.Checkpoints()
	switch {
	case err != nil:
		return nil, err
	case s == nil && len(names) > 0:
		return nil, fmt.Errorf("resume %s: none of its checkpoints can be read; remove %s to start at step 0", d.path, d.File(CheckpointDir))
	case s == nil:
		note("no checkpoint to resume from: starting at step 0")
		return nil, nil
	}
	if err := load(s); err != nil {
		return nil, fmt.Errorf("resume %s: %w", d.File(name), err)
	}
	end := slices.Index(names, name) + 1
	older := max(0, end-keep) // the kill may have come before their removal
	if err := d.RemoveCheckpoints(names[end:]); err != nil {
		return nil, err
	}
	return names[older:end], d.RemoveCheckpoints(names[:older])
}
