package stream

import (
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/temporal"
)

// No event of a batch sees what the others of the batch leave in the state. A network learns the less from state, the more
// events a node has in a batch: from 100 events a batch to 600 JODIE loses 3.6 points of validation AP on Email-EU, 3.9 on
// Wikipedia and 7.6 on CollegeMsg, where a node has 2.0, 2.3 and 2.8 events in a batch of 100.
const (
	mostBatch    = 600 // as TGL and MSPipe have it
	leastBatch   = 50  // fewer make a step of overhead
	batchStep    = 10  // between sizes that are looked at
	eventsOfNode = 2.5 // of a node in a batch, on average at most: it comes again once or twice
)

// settleBatch chooses how many events a batch has where the options leave it open: as many as make eventsOfNode.
func (t *trainer) settleBatch() error {
	if t.Batch != run.Auto {
		return nil
	}
	var sizes []int
	for size := leastBatch; size <= mostBatch; size += batchStep {
		sizes = append(sizes, size)
	}
	means, err := temporal.Recurrence(t.events, 0, t.split.Train, sizes)
	if err != nil {
		return err
	}
	chosen := 0
	for i := range sizes {
		if means[i] <= eventsOfNode {
			chosen = i
		}
	}
	t.Batch = sizes[chosen]
	t.note("batch of %d events: a node has %.1f in it on average, and %.1f in one of %d; events of a batch do not see each other's state; {batch} N changes it",
		t.Batch, means[chosen], means[len(means)-1], mostBatch)
	return nil
}
