package build

import "github.com/gnnstore/gnnstore/store"

// countUnreached counts the nodes of each split that receive no edge, in the dataset just sealed,
// and adds a note that names the remedy. It reads offsets alone. If the dataset cannot be opened
// (too little address space, or a file system that is not the disk's) it counts nothing: the build
// has succeeded, and training counts again.
func (b *builder) countUnreached() {
	ds, err := store.Open(b.out)
	if err != nil {
		return
	}
	defer ds.Close()
	for i := range b.report.Splits {
		s := &b.report.Splits[i]
		for k, of := range ds.Manifest().Splits {
			if of.Name != s.Name {
				continue
			}
			err = store.Guard(func() error {
				sets := ds.Split(k)
				for _, nodes := range [][]store.NodeID{sets.Train, sets.Valid, sets.Test} {
					s.NoEdge += ds.Unreached(s.NodeType, nodes)
				}
				return nil
			})
			if err != nil {
				return
			}
		}
		if s.NoEdge == 0 {
			continue
		}
		remedy := ""
		if flag := ds.Manifest().TurnsBack(s.NodeType); flag != "" {
			remedy = "; {" + flag + "} has messages flow along edges in both directions"
		}
		b.note("%d of the %d nodes of split %s receive no edge, so a network sees nothing of their neighbours%s", s.NoEdge, s.Train+s.Valid+s.Test, s.Name, remedy)
	}
}
