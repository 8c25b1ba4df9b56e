package pickle

import "fmt"

// Dialect has the names of one library's pickles beyond NumPy, SciPy and Python itself: three more
// allow-lists, and the memory there is. Its functions get values that the file chose, and make
// nothing that is larger than these. The zero value adds nothing.
type Dialect struct {
	// Names may be imported and passed as arguments.
	Names map[Global]bool
	// Calls may be imported and called. The instances of a class that is in Objects as well may be
	// called, too.
	Calls map[Global]func(args Tuple) (any, error)
	// Objects are classes whose instances are an [Object] with its state.
	Objects map[Global]bool
	// Persistent gives what stands outside the pickle under an id; nil when nothing does. What it
	// makes may have a method Kind, which names it in messages as [Kind] does.
	Persistent func(id any) (any, error)
	// Remedy is a line of Python that saves the arrays alone, for errors about other imports.
	Remedy string
	// Memory is the whole ingest's. A pickle may take a quarter of it, with the bytes of its file.
	// 0: 1 GiB.
	Memory int64
}

func (d *Dialect) knows(g Global) bool { return d.Names[g] || d.Calls[g] != nil || d.Objects[g] }

// persistent pushes what a persistent id stands for.
func (m *machine) persistent() error {
	id, err := m.pop()
	if err != nil {
		return err
	}
	v, err := m.dialect.Persistent(id)
	if err != nil {
		return fmt.Errorf("a reference out of the pickle: %w", err)
	}
	return m.push(v)
}
