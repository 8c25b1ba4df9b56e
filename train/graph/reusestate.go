package graph

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/zeebo/xxh3"

	"github.com/gnnstore/gnnstore/train/checkpoint"
	"github.com/gnnstore/gnnstore/train/history"
	"github.com/gnnstore/gnnstore/train/run"
)

// reused is the part of a checkpoint that has the hidden rows of earlier steps. They are in a file
// beside it, which may be as large as their memory: it is written and read a piece at a time. Each
// of several workers has a file of its own, in its own directory.
type reused struct {
	c  *core
	at *run.Progress
}

// reusedKey is the key of reusedFile in the metadata of a checkpoint.
const reusedKey = "gnnstore.history"

// reusedFile describes the file of hidden rows beside a checkpoint.
type reusedFile struct {
	Bytes int64  `json:"bytes"`
	Books int64  `json:"books"` // bytes before the slots: the index of the nodes whose rows they have
	XXH3  string `json:"xxh3"`
	Cold  bool   `json:"cold,omitempty"` // the run was resumed without rows
	// Workers is the number of workers that kept rows; 0: one.
	Workers int `json:"workers,omitempty"`
	// Pruned is reuse.pruned as of the checkpoint.
	Pruned []float64 `json:"pruned"`
	// Audited is reuse.audited as of the checkpoint; nil if there were no audits.
	Audited []run.AuditSums `json:"audited,omitempty"`
}

// ownKeys returns run.About.Own.
func (c *core) ownKeys() (keys []string) {
	if c.reuse.any() {
		keys = append(keys, reusedKey)
	}
	if c.owned() {
		keys = append(keys, embeddingsKey)
	}
	return keys
}

func reusedPath(dir *run.Dir, updates int) string {
	return dir.File(run.HistoryName(run.CheckpointName(updates)))
}

func (p reused) Save(s *checkpoint.State) error {
	if !p.c.reuse.any() {
		return nil
	}
	if err := p.c.Dir.MakeCheckpointDir(); err != nil {
		return err
	}
	u, sum := p.c.reuse, xxh3.New()
	f := reusedFile{Cold: u.cold, Pruned: u.pruned}
	if n := p.c.Hooks.Group.Size(); n > 1 {
		f.Workers = n
	}
	if _, ok := u.allAudited(); ok {
		f.Audited = u.audited
	}
	err := checkpoint.WriteBy(p.c.Dir.FS(), reusedPath(p.c.Dir, p.c.Updates()), func(w io.Writer) error {
		out := bufio.NewWriterSize(io.MultiWriter(sum, w), 4*pieceBytes) // it copies, since w may change what it writes
		u.snapshot.Take(u.cache)
		n, err := u.snapshot.WriteTo(out)
		f.Books, f.Bytes = n, n
		for _, k := range u.options.Kept {
			f.Bytes += 2 * int64(k.Slots) * int64(u.hidden)
		}
		if err == nil {
			err = u.save(out)
		}
		if err != nil {
			return err
		}
		return out.Flush()
	})
	if err != nil {
		return fmt.Errorf("keep hidden rows: %w", err)
	}
	f.XXH3 = fmt.Sprintf("%016x", sum.Sum64())
	return s.Put(reusedKey, f)
}

func (p reused) Check(s *checkpoint.State) error {
	if !p.c.reuse.any() || p.c.HistoryCold || p.ofOthers(s) > 0 {
		return nil
	}
	return p.explain(p.open(s, func(r io.Reader, f reusedFile) error {
		in, sum := bufio.NewReader(r), xxh3.New()
		// If the file is too short for a head, the hash is wrong.
		head, _ := in.Peek(history.HeadBytes)
		if err := history.CheckVersion(head); err != nil {
			return err
		}
		n, err := io.Copy(sum, in)
		if err != nil {
			return err
		}
		if n != f.Bytes || fmt.Sprintf("%016x", sum.Sum64()) != f.XXH3 {
			return errors.New("it is not as it was written")
		}
		return nil
	}))
}

func (p reused) Load(s *checkpoint.State) error {
	if !p.c.reuse.any() {
		return nil
	}
	u := p.c.reuse
	before := p.ofOthers(s)
	if before > 0 && !p.c.HistoryCold {
		p.c.Note("history: rows were kept by %d workers, each for its share of steps; %d go on without them, to other results",
			before, p.c.Hooks.Group.Size())
	}
	if before > 0 || p.c.HistoryCold {
		u.cold = true
		return u.begin(p.at.Updates)
	}
	return p.explain(p.open(s, func(r io.Reader, f reusedFile) (err error) {
		if n := len(f.Pruned); n != len(u.pruned) || f.Audited != nil && n != len(f.Audited) {
			return fmt.Errorf("%s: rows of %d layers and types, audits of %d, and the run keeps rows of %d", reusedKey, n, len(f.Audited), len(u.pruned))
		}
		u.cold, u.pruned = f.Cold, f.Pruned
		copy(u.audited, f.Audited)
		if u.cache, err = history.Restore(u.options, io.LimitReader(r, f.Books)); err != nil {
			return err
		}
		return u.load(r)
	}))
}

// ofOthers returns the number of workers that kept the rows of a checkpoint, if it is not the
// number of workers now; else 0.
func (p reused) ofOthers(s *checkpoint.State) int {
	var f reusedFile
	if err := json.Unmarshal([]byte(s.Meta[reusedKey]), &f); err != nil {
		return 0 // open returns the error
	}
	if before := max(f.Workers, 1); before != p.c.Hooks.Group.Size() {
		return before
	}
	return 0
}

// open opens the file of hidden rows of a checkpoint for the length of read.
func (p reused) open(s *checkpoint.State, read func(r io.Reader, f reusedFile) error) error {
	var f reusedFile
	if err := json.Unmarshal([]byte(s.Meta[reusedKey]), &f); err != nil {
		return fmt.Errorf("%s: %w", reusedKey, err)
	}
	file, err := checkpoint.Open(p.c.Dir.FS(), reusedPath(p.c.Dir, p.at.Updates))
	if err != nil {
		return err
	}
	defer file.Close()
	return read(file, f)
}

// explain adds to an error of the file how to go on without it.
func (p reused) explain(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, history.ErrVersion) {
		return fmt.Errorf("the hidden rows that it kept are in %s: %w; go on without these rows, and to other results, with {history_cold}",
			reusedPath(p.c.Dir, p.at.Updates), err)
	}
	return fmt.Errorf("the hidden rows that it kept are in %s: %w; restore that file, remove the checkpoint to resume from the one before it, or go on without "+
		"these rows, and to other results, with {history_cold}", reusedPath(p.c.Dir, p.at.Updates), err)
}
