package sampledata

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAmazonComputersIsTheOriginal(t *testing.T) {
	sum := sha256.Sum256(AmazonComputers())
	require.Equal(t, SHA256, hex.EncodeToString(sum[:]))
	AmazonComputers()[0]++
	require.Equal(t, byte('P'), AmazonComputers()[0])
}
