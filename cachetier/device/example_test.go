package device_test

import (
	"fmt"

	"github.com/gnnstore/gnnstore/cachetier/device"
)

// Two steps of a run in which step i sees what step i-1 wrote.
func ExampleLedger() {
	l, err := device.NewLedger(device.Options{
		Layout:    device.Layout{Bytes: 1000, SlotBytes: 100, RowBytes: 50, Rows: 1_000_000},
		Staleness: 1, MaxAge: 200,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	node := device.Key{Node: 7, Layer: 1}

	l.Begin(0)
	_, found := l.Use(node)
	r := l.Reserve(nil, 2)
	fmt.Println("step 0 reads rows below", l.Features(), "found", found, "writes", r.Slots, "over rows", r.Displaced)
	l.WriteBack(0, []device.Key{node, {Node: 9, Layer: 2}}, nil)

	l.Begin(1)
	v, found := l.Use(node)
	r = l.Reserve(r.Slots, 1)
	fmt.Println("step 1 reads rows below", l.Features(), "found", found, "slot", v.Slot, "of step", v.Stamp)
	// Output:
	// step 0 reads rows below 20 found false writes [0 1] over rows {16 20}
	// step 1 reads rows below 16 found true slot 0 of step 0
}
