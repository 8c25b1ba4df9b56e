package export

import (
	"fmt"
)

// writeNPY writes the folder of arrays.
func (e *exporter) writeNPY() error {
	m := e.newManifest()
	for i, n := range e.types {
		if err := e.writeNodes(i, n, &m.NodeTypes[i]); err != nil {
			return err
		}
	}
	for i, s := range e.m.Splits {
		if _, err := e.writeSplit(i); err != nil {
			return err
		}
		m.NodeTypes[e.typeIndex(s.NodeType)].Splits[s.Name] = fmt.Sprintf("split/%s-*.npy", s.Name)
	}
	for i, r := range e.m.Relations {
		if err := e.writeEdges(i, r.Key(), &m.Relations[i]); err != nil {
			return err
		}
		if err := e.writeHeld(i, &m.Relations[i]); err != nil {
			return err
		}
	}
	return e.writeManifest(m)
}

// writeNodes writes the ids, tables and labels of a node type into its folder.
func (e *exporter) writeNodes(i int, n *numbering, to *manifestType) error {
	dir := n.typ.Name
	used := map[string]bool{"ids": true, "names": true}
	name := func(s, kind string) string {
		if used[s] {
			s += "-" + kind
		}
		used[s] = true
		return dir + "/" + s + ".npy"
	}
	var err error
	if to.IDs, err = e.writeIDs(dir+"/ids.npy", n); err != nil {
		return err
	}
	e.report.NodeTypes[i].IDs = to.IDs
	if n.ids.HasNames() {
		to.Names = dir + "/names.csv"
		if err := e.writeNames(to.Names, n); err != nil {
			return err
		}
	}
	for k, t := range e.m.Tables {
		if t.NodeType == n.typ.Name {
			to.Tables[t.Name] = name(t.Name, "table")
			if err := e.writeRows(to.Tables[t.Name], k); err != nil {
				return err
			}
		}
	}
	for k, l := range e.m.Labels {
		if l.NodeType == n.typ.Name {
			file := name(l.Name, "label")
			to.Labels[l.Name] = manifestLabel{File: file, Classes: l.Classes, Multi: l.Multi, Numbers: l.Numbers, ClassNames: l.ClassNames}
			if err := e.writeLabels(file, k); err != nil {
				return err
			}
		}
	}
	return nil
}
