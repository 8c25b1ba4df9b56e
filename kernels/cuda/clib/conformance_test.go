//go:build cuda && linux

package clib

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/kerneltest"
)

// Every operation, made of launches, conforms: with the element variants alone, with the wide ones
// wherever the columns allow it, and with threads in another order.
func TestConform(t *testing.T) {
	l := open(t)
	for _, c := range []struct {
		name  string
		mode  mode
		order int
	}{{"elements", elements, 0}, {"wide", aligned, 0}, {"order", natural, 3}} {
		t.Run(c.name, func(t *testing.T) {
			l.order(c.order)
			defer l.order(0)
			kerneltest.Run(t, func() kernels.Backend { return newDevice(l, c.mode) })
		})
	}
}

// The suite launches every kernel.
func TestConformAll(t *testing.T) {
	l := open(t)
	if l.launched["fill"] == 0 {
		t.Skip("TestConform did not run")
	}
	for name := range l.kernels {
		require.NotZero(t, l.launched[name], name)
	}
}
