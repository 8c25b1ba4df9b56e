//go:build !linux

package main

import "errors"

// pin is for Linux only.
func pin() (processor int, free func(), err error) {
	return -1, func() {}, errors.New("processors are chosen on Linux only")
}
