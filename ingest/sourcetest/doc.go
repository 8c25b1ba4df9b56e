// Package sourcetest reads ingest sources in tests, and tests that they keep the contract of
// [ingest.Source].
//
// [Collect] reads a source whole into a [Graph], plain slices that a test compares. [Read] is
// Collect for an input that may be refused. [Conform] tests all that the contract promises,
// whatever the format; the tests of each package that implements a source call it once for each
// layout of files. Start reading at the list of promises in conform.go.
//
// A Graph is the caller's. Nothing here is safe for concurrent use.
package sourcetest
