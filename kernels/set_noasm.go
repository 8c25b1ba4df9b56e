//go:build !amd64 || purego

package kernels

func nativeSets() []Set { return nil }

func bf16Sets() (sets []Set, why string) { return nil, "this build has no kernels in assembly" }

func routinesOf(Set) routines { return portable }

func dotsHelp() bool { return false }
