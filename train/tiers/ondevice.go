package tiers

import (
	"fmt"

	"github.com/gnnstore/gnnstore/cachetier/device"
	"github.com/gnnstore/gnnstore/kernels"
)

// NoDevice as Options.Cache.DeviceBytes stands for no rows on the device. 0 lets Open choose: none
// on the CPU, and on a GPU what a step leaves of its memory.
const NoDevice = -1

// deviceSpare is the part of a device's memory that a run leaves to its driver and to batches that
// are larger than the first: a sixteenth.
const deviceSpare = 16

// fitDevice chooses how many rows lie on a device with memory of its own: as many as fit beside a
// step and the slots of hidden rows. It refuses what does not fit.
func (t *Tiers) fitDevice(m Measure) error {
	room, ok, err := kernels.RoomOf(t.be)
	if err != nil || !ok || m.OnDevice == 0 || !device.Apart(t.be) {
		return err
	}
	room = max(0, room-room/deviceSpare-m.Evaluation)
	given := t.Cache.DeviceBytes
	// takes returns what the device needs beside so many bytes of rows, and leaves these chosen.
	takes := func(rows int64) int64 {
		t.Cache.DeviceBytes = rows
		d, _ := t.demand(m)
		return d.OnDevice
	}
	beside := takes(1) // more than without: rows that came are put together with those that lie there
	size := kernels.FormatBytes
	switch {
	case t.anyDevice && beside < room:
		t.Cache.DeviceBytes = room - beside
		return nil
	case !t.anyDevice && given > 0 && given+beside <= room:
		t.Cache.DeviceBytes = given
		return nil
	case !t.anyDevice && given > 0 && takes(0) <= room:
		return fmt.Errorf("{device_bytes} %s is too much: the device has %s for this run, and a step with its rows and slots "+
			"takes %s of that; give %s or less", size(given), size(room), size(beside), size(max(0, room-beside)))
	}
	if beside = takes(0); beside <= room {
		return nil
	}
	return fmt.Errorf("a step with its rows and slots takes %s on the device, which has %s for this run: take a smaller "+
		"{batch}, {fanout} or {hidden}", size(beside), size(room))
}
