//go:build cuda && linux

package main

import "fmt"

// attributes are the device attributes that the backend needs: CU_DEVICE_ATTRIBUTE_…
var attributes = []struct {
	name  string
	which int
}{
	{"multiprocessors", 16},
	{"compute capability, major", 75},
	{"compute capability, minor", 76},
	{"clock kHz", 13},
	{"memory clock kHz", 36},
	{"memory bus bits", 37},
	{"L2 bytes", 38},
	{"copy engines", 40},
	{"shared bytes a block, opt-in", 97},
	{"registers a multiprocessor", 82},
	{"memory pools", 115},
	{"pageable memory access", 88},
	{"registered pointer is the device's", 91},
	{"integrated", 18},
}

// showDevice prints the properties of the driver and of device 0.
func showDevice(o *options) error {
	d, err := openDriver(o.library)
	if err != nil {
		return err
	}
	out := d.memory.words(1)
	d.do("cuDriverGetVersion", at(out))
	fmt.Println("driver version", out[0])
	d.do("cuDeviceGetCount", at(out))
	fmt.Println("devices", out[0])
	d, err = open(o)
	if err != nil {
		return err
	}
	name := d.memory.take(256)
	d.do("cuDeviceGetName", addressOf(name), 256, uintptr(d.device))
	uuid := d.memory.take(16)
	d.do("cuDeviceGetUuid_v2", addressOf(uuid), uintptr(d.device))
	memory := d.memory.longs(2)
	d.do("cuDeviceTotalMem_v2", at(memory), uintptr(d.device))
	fmt.Printf("name %s, uuid %x, memory %.2f GiB\n", cString(name), uuid, gib(memory[0]))
	d.do("cuMemGetInfo_v2", at(memory), at(memory[1:]))
	fmt.Printf("free %.2f GiB of %.2f GiB\n", gib(memory[0]), gib(memory[1]))
	for _, a := range attributes {
		fmt.Printf("%s %d\n", a.name, d.attribute(a.which))
	}
	return nil
}

func gib(bytes uint64) float64 { return float64(bytes) / (1 << 30) }
