package mutable

// SetBatches sets the sizes of the buffers for writing and for copying.
func SetBatches(put, copied int64) { putBytes, copyBytes = put, copied }

// Sum returns the checksum of a record in a row file.
func Sum(serial uint64, row uint32, b []byte) uint32 {
	return (&rowFile{serial: serial}).sum(row, b)
}
