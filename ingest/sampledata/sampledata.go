// Package sampledata embeds the one graph that gnnstore ships: Amazon Computers, small enough to
// carry in the binary and real enough that a trained model means something. The README beside it
// says where it comes from and under what licence.
package sampledata

import (
	_ "embed"
	"slices"
)

// SHA256 is the checksum of what [AmazonComputers] returns.
const SHA256 = "31f68de2eef9eb3ba00190e48b05e98bfd88870183a69cd746b1211b68637d3e"

//go:embed amazon_electronics_computers.npz
var amazonComputers []byte

// AmazonComputers is a copy of amazon_electronics_computers.npz: 13,752 products, 287,209 "bought
// together" edges, 767 binary words of reviews, 10 classes. Package npz reads it.
func AmazonComputers() []byte { return slices.Clone(amazonComputers) }
