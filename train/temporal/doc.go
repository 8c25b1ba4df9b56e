// Package temporal draws batches from a stream of events.
package temporal
