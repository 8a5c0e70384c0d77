package twoefay

import (
	"context"
	"sync"
	"time"
)

// MemoryStore is a store in memory. It forgets all pinned keys when the process ends: it is for
// tests and trials.
type MemoryStore struct {
	mutex   sync.Mutex
	tokens  map[string]string
	secrets map[string]map[string]time.Time
	phones  map[string]map[string]*JWK // nil: unpinned
	open    map[string]time.Time
	seen    map[string]time.Time
}

// NewMemoryStore makes an empty store.
func NewMemoryStore() *MemoryStore {
	return &MemoryStore{
		tokens: map[string]string{}, secrets: map[string]map[string]time.Time{},
		phones: map[string]map[string]*JWK{}, open: map[string]time.Time{}, seen: map[string]time.Time{},
	}
}

// AddUser implements Store.
func (s *MemoryStore) AddUser(_ context.Context, username, token string) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.tokens[username] = token
	return nil
}

// Token implements Store.
func (s *MemoryStore) Token(_ context.Context, username string) (string, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.tokens[username], nil
}

// AddSecret implements Store.
func (s *MemoryStore) AddSecret(_ context.Context, username string, k []byte, now time.Time) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.secrets[username] == nil {
		s.secrets[username] = map[string]time.Time{}
	}
	deleteOld(s.secrets[username], secretLife, now)
	s.secrets[username][string(k)] = now
	return nil
}

// Secrets implements Store.
func (s *MemoryStore) Secrets(_ context.Context, username string, now time.Time) ([][]byte, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var found [][]byte
	for k, at := range s.secrets[username] {
		if now.Sub(at) < secretLife {
			found = append(found, []byte(k))
		}
	}
	return found, nil
}

// Pin implements Store.
func (s *MemoryStore) Pin(_ context.Context, username, device string, key JWK, k []byte) (bool, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	_, isOpen := s.secrets[username][string(k)]
	_, isThere := s.phones[username][device]
	if !isOpen || isThere {
		return false, nil
	}
	delete(s.secrets, username)
	if s.phones[username] == nil {
		s.phones[username] = map[string]*JWK{}
	}
	s.phones[username][device] = &key
	return true, nil
}

// Pins implements Store.
func (s *MemoryStore) Pins(_ context.Context, username string) (map[string]JWK, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	found := map[string]JWK{}
	for device, key := range s.phones[username] {
		if key != nil {
			found[device] = *key
		}
	}
	return found, nil
}

// WasPinned implements Store.
func (s *MemoryStore) WasPinned(_ context.Context, username string) (bool, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.phones[username]) > 0, nil
}

// Unpin implements Store.
func (s *MemoryStore) Unpin(_ context.Context, username, device string) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.unpin(username, device)
	return nil
}

func (s *MemoryStore) unpin(username, device string) {
	key, isThere := s.phones[username][device]
	if isThere && key == nil {
		return // unpinned before
	}
	delete(s.secrets, username)
	if isThere {
		s.phones[username][device] = nil
	}
}

// UnpinByToken implements Store.
func (s *MemoryStore) UnpinByToken(_ context.Context, token, device string) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for username, own := range s.tokens {
		if own == token {
			s.unpin(username, device)
		}
	}
	return nil
}

// Forget implements Store.
func (s *MemoryStore) Forget(_ context.Context, username string) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.tokens, username)
	delete(s.secrets, username)
	delete(s.phones, username)
	return nil
}

// Open implements Store.
func (s *MemoryStore) Open(_ context.Context, request string, now time.Time) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	deleteOld(s.open, requestLife, now)
	s.open[request] = now
	return nil
}

// Spend implements Store.
func (s *MemoryStore) Spend(_ context.Context, request string) (bool, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	_, isOpen := s.open[request]
	delete(s.open, request)
	return isOpen, nil
}

// HasSeen implements Store.
func (s *MemoryStore) HasSeen(_ context.Context, event string) (bool, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	_, isThere := s.seen[event]
	return isThere, nil
}

// See implements Store.
func (s *MemoryStore) See(_ context.Context, event string, now time.Time) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	deleteOld(s.seen, eventLife, now)
	s.seen[event] = now
	return nil
}

func deleteOld(table map[string]time.Time, life time.Duration, now time.Time) {
	for name, at := range table {
		if now.Sub(at) > life {
			delete(table, name)
		}
	}
}
