package checkpoint

import "encoding/json"

// State is the contents of a checkpoint: the tensors and the metadata of all parts of a run.
type State struct {
	Tensors []Tensor
	Meta    map[string]string
}

// Put adds v to the metadata, as JSON.
func (s *State) Put(key string, v any) error {
	text, err := json.Marshal(v)
	s.Meta[key] = string(text)
	return err
}

// Part is something of a run that has state between two steps: weights, an optimizer, a task, how
// far the run has come.
type Part interface {
	// Save adds to s what the part needs to go on from here, under names that no other part has.
	// State that is too large for tensors is in files of the part's own: they are on disk, synced,
	// before Save returns, and the metadata names them.
	Save(s *State) error
	// Check returns an error if the part cannot go on from s. It changes nothing of the run.
	Check(s *State) error
	// Load goes on from s, in which Check found nothing wrong.
	Load(s *State) error
}

// Parts has all parts of a run that a checkpoint restores.
type Parts []Part

// Save returns the state of all parts.
func (p Parts) Save() (*State, error) {
	s := &State{Meta: map[string]string{}}
	for _, part := range p {
		if err := part.Save(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Check asks each part in turn, and returns the first error.
func (p Parts) Check(s *State) error {
	for _, part := range p {
		if err := part.Check(s); err != nil {
			return err
		}
	}
	return nil
}

// Load has each part go on from s. After an error the parts are of no use.
func (p Parts) Load(s *State) error {
	for _, part := range p {
		if err := part.Load(s); err != nil {
			return err
		}
	}
	return nil
}
