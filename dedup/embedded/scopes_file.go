package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/kdedup/kdedup/internal/durable"
	"github.com/kdedup/kdedup/internal/hashlog"
)

// The file scopes.json names the scopes. Each has a directory of its own for its claims, whose name
// ends with the scope's ID; what scopes.json does not name was forgotten, or begun and not
// finished.
type scopesFile struct {
	Version int           `json:"version"`
	LastID  int           `json:"last_id"`
	Scopes  []scopeRecord `json:"scopes"`
}

type scopeRecord struct {
	ConsumerGroup string `json:"consumer_group"`
	Name          string `json:"name"`
	ID            int    `json:"id"`
	Registered    bool   `json:"registered"`
	Buckets       int    `json:"buckets,omitempty"`
	Extractor     string `json:"extractor,omitempty"`
}

func (r scopeRecord) nameOf() scopeName { return scopeName{r.ConsumerGroup, r.Name} }

const (
	scopesName    = "scopes.json"
	scopesVersion = 1
	claimsPrefix  = "claims-"
)

func (s *Store) claimsPath(id int) string {
	return filepath.Join(s.path, fmt.Sprintf("%s%06d", claimsPrefix, id))
}

// loadScopes opens the claims of all scopes; there are as many as pipelines ever used the
// directory.
func (s *Store) loadScopes() error {
	file, err := s.readScopes()
	if err != nil {
		return err
	}
	s.lastID = file.LastID
	for _, record := range file.Scopes {
		path := s.claimsPath(record.ID)
		if !hashlog.Exists(path) {
			return fmt.Errorf("%s: the claims of scope %s/%s are missing; bring them back, or "+
				"empty the store's directory",
				path, record.ConsumerGroup, record.Name)
		}
		claims, err := s.openClaims(record.ID)
		if err != nil {
			return err
		}
		s.scopes[record.nameOf()] = newScopeState(record, claims)
	}
	return s.deleteLeftovers()
}

func (s *Store) readScopes() (file scopesFile, err error) {
	name := filepath.Join(s.path, scopesName)
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return file, s.begin()
	}
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	if err == nil && file.Version != scopesVersion {
		err = fmt.Errorf("version %d, this program knows %d", file.Version, scopesVersion)
	}
	if err != nil {
		return file, fmt.Errorf("read %s: %w", name, err)
	}
	return file, nil
}

// begin makes the file, so that claims without it are known to have lost it. Directories of earlier
// versions are refused.
func (s *Store) begin() error {
	for pattern, why := range map[string]string{
		"MANIFEST*": "the directory holds files of another database; name another " +
			"directory, or empty this one",
		claimsPrefix + "*": scopesName +
			" is missing, and there are claims; bring it back, or empty the directory",
	} {
		found, err := filepath.Glob(filepath.Join(s.path, pattern))
		if err != nil {
			return err
		}
		if len(found) > 0 {
			return fmt.Errorf("%s: %s", found[0], why)
		}
	}
	return s.saveScopes()
}

// openClaims makes the log if it is new: durably, so that scopes.json may name it.
func (s *Store) openClaims(id int) (*hashlog.Log, error) {
	path := s.claimsPath(id)
	if err := durable.MakeDirectories(s.disk, path); err != nil {
		return nil, err
	}
	return hashlog.Open(path, s.logs)
}

func (s *Store) deleteLeftovers() error {
	used := make(map[string]bool)
	for _, state := range s.scopes {
		used[s.claimsPath(state.record.ID)] = true
	}
	names, err := filepath.Glob(filepath.Join(s.path, claimsPrefix+"*"))
	if err != nil {
		return err
	}
	for _, name := range names {
		if !used[name] {
			err = errors.Join(err, durable.RemoveDirectory(s.disk, name))
		}
	}
	return err
}

// saveScopes is called with mu held.
func (s *Store) saveScopes() error {
	file := scopesFile{Version: scopesVersion, LastID: s.lastID}
	for _, state := range s.scopes {
		file.Scopes = append(file.Scopes, state.record)
	}
	slices.SortFunc(file.Scopes, func(a, b scopeRecord) int { return a.ID - b.ID })
	data, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return err
	}
	return durable.Replace(s.disk, filepath.Join(s.path, scopesName), data)
}
