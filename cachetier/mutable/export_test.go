package mutable

// SetBatches has so many bytes written, and copied, at a time.
func SetBatches(put, copied int64) { putBytes, copyBytes = put, copied }

// Sum is the checksum of a record in a row file.
func Sum(serial uint64, row uint32, b []byte) uint32 {
	return (&rowFile{serial: serial}).sum(row, b)
}
