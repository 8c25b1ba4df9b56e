package run

import (
	"time"

	"github.com/gnnstore/gnnstore/kernels"
)

// Peak is the most memory that the process was seen to take: its own and that of mapped files.
type Peak struct {
	RSS, File int64

	last time.Time
}

// Look looks, a few times a second at most.
func (p *Peak) Look() {
	if now := time.Now(); now.Sub(p.last) > 100*time.Millisecond {
		p.last = now
		anon, file := kernels.ResidentBytes()
		p.RSS, p.File = max(p.RSS, anon), max(p.File, file)
	}
}
