package stream

import (
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/temporal"
)

// No event of a batch sees what the others of the batch do to the state. So a network learns less
// from state, the more events a node has in a batch: from 100 events a batch to 600 JODIE loses 3.6
// points of validation AP on Email-EU, 3.9 on
// Wikipedia and 7.6 on CollegeMsg, where a node has 2.0, 2.3 and 2.8 events in a batch of 100.
const (
	mostBatch    = 600 // as in TGL and MSPipe
	leastBatch   = 50  // smaller batches are mostly overhead
	batchStep    = 10  // between the sizes that are tried
	eventsOfNode = 2.5 // at most in a batch, on average: it comes again once or twice
)

// settleBatch chooses the events of a batch if that is Auto: as many as keep to eventsOfNode.
func (c *core) settleBatch() error {
	if c.Batch != run.Auto {
		return nil
	}
	var sizes []int
	for size := leastBatch; size <= mostBatch; size += batchStep {
		sizes = append(sizes, size)
	}
	means, err := temporal.Recurrence(c.events, 0, c.split.Train, sizes)
	if err != nil {
		return err
	}
	chosen := 0
	for i := range sizes {
		if means[i] <= eventsOfNode {
			chosen = i
		}
	}
	c.Batch = sizes[chosen]
	c.Note("batch of %d events: a node has %.1f in it on average, and %.1f in one of %d; events of a batch do not see each other's state; {batch} N changes it",
		c.Batch, means[chosen], means[len(means)-1], mostBatch)
	return nil
}
