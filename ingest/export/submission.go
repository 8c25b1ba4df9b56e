package export

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/gnnstore/gnnstore/ingest/rawfile"
)

// OGBLSC is a format of predictions: what OGB's large-scale challenge takes for MAG240M. See
// [WriteSubmission].
const OGBLSC Format = "ogb-lsc"

// WriteSubmission writes the classes of the nodes of a mode (test-dev, test-challenge or
// test-whole), in the challenge's order, as its MAG240MEvaluator.save_test_submission does: the
// file y_pred_mag240m_MODE.npz in a folder, which is made if it is not there, with the array y_pred
// of int16, deflated.
func WriteSubmission(dir, mode string, classes []int16, force bool) (_ *RowsReport, err error) {
	fsys, path := vfs.Default, filepath.Join(dir, "y_pred_mag240m_"+mode+".npz")
	if err := fsys.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	lock, err := Claim(fsys, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if err := MayWrite(fsys, path, force); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	z := rawfile.NewNPZ(&b)
	w, err := z.Array("y_pred", "<i2", int64(len(classes)))
	if err == nil {
		err = errors.Join(binary.Write(w, binary.LittleEndian, classes), z.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f, err := fsys.Create(path+".partial", vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(b.Bytes())
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = fsys.Rename(path+".partial", path)
	}
	if err != nil {
		return nil, errors.Join(err, fsys.Remove(path+".partial"))
	}
	return &RowsReport{Format: OGBLSC, Files: []string{path}, Bytes: int64(b.Len())}, syncDir(fsys, dir)
}
