package mutable

// SetBatches has so many bytes written, and copied, at a time.
func SetBatches(put, copied int64) { putBytes, copyBytes = put, copied }
