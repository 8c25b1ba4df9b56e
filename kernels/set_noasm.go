//go:build !amd64 || purego

package kernels

func nativeSets() []Set { return nil }

func routinesOf(Set) routines { return portable }
