package npy

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// AppendHeader appends what an array in row-major order begins with, so that its elements start at
// a multiple of 64 bytes: magic, version 1.0, the form. The elements are the caller's to write,
// little-endian, as descr says: "<f4", "<i8".
func AppendHeader(b []byte, descr string, shape ...int64) []byte {
	var dims strings.Builder
	for i, d := range shape {
		if i > 0 {
			dims.WriteString(", ")
		}
		fmt.Fprint(&dims, d)
	}
	if len(shape) == 1 {
		dims.WriteByte(',')
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, dims.String())
	const fixed = 10
	length := (fixed+len(text)+1+63)/64*64 - fixed
	b = append(b, "\x93NUMPY\x01\x00"...)
	b = binary.LittleEndian.AppendUint16(b, uint16(length))
	b = append(b, text...)
	b = append(b, strings.Repeat(" ", length-len(text)-1)...)
	return append(b, '\n')
}
