package rounds

import "fmt"

// check panics on err: the models of this package have none.
func check(err error) {
	if err != nil {
		panic("rounds: " + err.Error())
	}
}

// model builds a topology of a usual machine.
type model struct{ *builder }

func newModel(format string, args ...any) model {
	return model{newBuilder(fmt.Sprintf(format, args...))}
}

// gpus adds n workers and returns their names.
func (m model) gpus(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint("w", i))
		check(m.worker(names[i]))
	}
	return names
}

func (m model) join(a, b string, bytesPerSecond float64) {
	check(m.link(Link{Ends: [2]string{a, b}, BytesPerSecond: bytesPerSecond}))
}

func (m model) done() *Topology {
	t, err := m.finish()
	check(err)
	return t
}

// PCIe returns GPUs under switches under one root. each is the number of GPUs of a switch.
func PCIe(switches, each int, bytesPerSecond float64) *Topology {
	m := newModel("PCIe, %d switches of %d", switches, each)
	for i, w := range m.gpus(switches * each) {
		m.join(w, fmt.Sprint("switch", i/each), bytesPerSecond)
	}
	for s := range switches {
		m.join(fmt.Sprint("switch", s), "root", bytesPerSecond)
	}
	return m.done()
}

// Mesh returns n GPUs with a link between every two.
func Mesh(n int, bytesPerSecond float64) *Topology {
	m := newModel("mesh of %d", n)
	all := m.gpus(n)
	for i, a := range all {
		for _, b := range all[i+1:] {
			m.join(a, b, bytesPerSecond)
		}
	}
	return m.done()
}

// CubeMesh returns the NVLink mesh of a DGX-1: two meshes of four GPUs, and a link from each GPU to
// one GPU of the other mesh. Messages to the other three of that mesh pass that GPU.
func CubeMesh(bytesPerSecond float64) *Topology {
	m := newModel("NVLink cube mesh of 8")
	all := m.gpus(8)
	for i, a := range all[:4] {
		m.join(a, all[4+i], bytesPerSecond) // first, so that paths cross first: see finish
	}
	for _, four := range [][]string{all[:4], all[4:]} {
		for i, a := range four {
			for _, b := range four[i+1:] {
				m.join(a, b, bytesPerSecond)
			}
		}
	}
	return m.done()
}

// Switch returns workers at one switch.
func Switch(n int, bytesPerSecond float64) *Topology {
	m := newModel("switch of %d", n)
	for _, w := range m.gpus(n) {
		m.join(w, "switch", bytesPerSecond)
	}
	return m.done()
}

// Sockets returns two sockets of a machine, with so many workers at each. between is the speed of
// the link that joins them.
func Sockets(each int, bytesPerSecond, between float64) *Topology {
	m := newModel("two sockets of %d", each)
	for i, w := range m.gpus(2 * each) {
		m.join(w, fmt.Sprint("socket", i/each), bytesPerSecond)
	}
	m.join("socket0", "socket1", between)
	return m.done()
}

// FatTree returns racks of machines, with a link from each rack to each of the spines. All links
// are equally fast, so a rack is oversubscribed by each/spines. The receiver of a message to
// another rack decides which spine it passes, as with switches that have fixed routes.
func FatTree(racks, each, spines int, bytesPerSecond float64) *Topology {
	m := newModel("fat tree, %d racks of %d, %d spines", racks, each, spines)
	all := m.gpus(racks * each)
	rack, up := make([]string, racks), make([][]string, racks)
	for i, w := range all {
		m.join(w, fmt.Sprint("rack", i/each), bytesPerSecond)
	}
	for r := range racks {
		rack[r] = fmt.Sprint("rack", r)
		for s := range spines {
			spine := fmt.Sprint("spine", s)
			m.join(rack[r], spine, bytesPerSecond)
			up[r] = append(up[r], rack[r]+"-"+spine)
		}
	}
	for p, from := range all {
		for q, to := range all {
			if r, s := p/each, q/each; r != s {
				over := []string{from + "-" + rack[r], up[r][q%spines], up[s][q%spines], to + "-" + rack[s]}
				check(m.path(from, to, over))
			}
		}
	}
	return m.done()
}
