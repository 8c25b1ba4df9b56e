package ingest

import "context"

// Plain has what most sources have in common, for them to embed: their nodes go by row, they have
// no extras, and their files are open only while a section is read. A source that has more brings
// its own methods.
type Plain struct{}

// NodeIDs emits nothing.
func (Plain) NodeIDs(context.Context, int, func(IDChunk) error) error { return nil }

// Extras returns none.
func (Plain) Extras() Extras { return Extras{} }

// Close has nothing to close.
func (Plain) Close() error { return nil }

// ScanOnce returns a copy of *known. The first call has scan make it, unless scan fails.
func ScanOnce(ctx context.Context, known **Schema, scan func(context.Context) (*Schema, error)) (*Schema, error) {
	if *known == nil {
		schema, err := scan(ctx)
		if err != nil {
			return nil, err
		}
		*known = schema
	}
	return new(**known), nil
}
