package twoefay

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Dialect is how a database marks the values of a statement.
type Dialect int

// The dialects of SQLStore.
const (
	SQLite     Dialect = iota // ?
	MySQL                     // ?, also MariaDB
	PostgreSQL                // $1, $2, …
)

// SQLStore is a store in the website's own database, with the website's own driver. The clients of
// other languages use the same tables, so websites in several languages can share them.
type SQLStore struct {
	db      *sql.DB
	dialect Dialect
}

// NewSQLStore makes a store. Call CreateTables once before, or create the tables by other means.
func NewSQLStore(db *sql.DB, dialect Dialect) *SQLStore { return &SQLStore{db, dialect} }

// VARCHAR rather than TEXT: MySQL has no key over a TEXT. All rows are written by a key: a
// statement that has to look for its rows would lock those of other users in MySQL, and end in
// deadlocks.
var tables = []string{
	"twoefay_user (name VARCHAR(64) PRIMARY KEY, token VARCHAR(255) NOT NULL)",
	"twoefay_secret (name VARCHAR(64) NOT NULL, k VARCHAR(64) NOT NULL, at BIGINT NOT NULL," +
		" PRIMARY KEY (name, k))",
	"twoefay_phone (name VARCHAR(64) NOT NULL, device VARCHAR(255) NOT NULL," +
		" jwk VARCHAR(1000) NOT NULL, revoked SMALLINT DEFAULT 0 NOT NULL, PRIMARY KEY (name, device))",
	"twoefay_request (request VARCHAR(64) PRIMARY KEY, at BIGINT NOT NULL)",
	"twoefay_event (event VARCHAR(255) PRIMARY KEY, at BIGINT NOT NULL)",
}

// CreateTables creates the tables that are missing.
func (s *SQLStore) CreateTables(ctx context.Context) error {
	for _, table := range tables {
		_, err := s.db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+table)
		if err != nil { // PostgreSQL fails if another process creates the table just now
			_, err = s.db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+table)
		}
		if err != nil {
			return failed(err)
		}
	}
	return nil
}

// keyOf returns the name as a key. Databases compare texts without case or trailing spaces, as
// their collation says: another user's phone must not count because of that.
func keyOf(username string) string {
	sum := sha256.Sum256([]byte(username))
	return hex.EncodeToString(sum[:])
}

func failed(err error) error { return fmt.Errorf("twoefay: store: %w", err) }

// statement replaces each ? by the mark of the database.
func (s *SQLStore) statement(text string) string {
	if s.dialect != PostgreSQL {
		return text
	}
	parts := strings.Split(text, "?")
	for i := range parts[1:] {
		parts[i] += fmt.Sprintf("$%d", i+1)
	}
	return strings.Join(parts, "")
}

// runner is a database or a transaction.
type runner interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// run runs a statement, and returns how many rows it changed.
func (s *SQLStore) run(ctx context.Context, on runner, text string, values ...any) (int64, error) {
	result, err := on.ExecContext(ctx, s.statement(text), values...)
	if err != nil {
		return 0, failed(err)
	}
	count, err := result.RowsAffected()
	if err != nil {
		return 0, failed(err)
	}
	return count, nil
}

// transaction commits what work did, unless work returns false or an error.
func (s *SQLStore) transaction(ctx context.Context, work func(*sql.Tx) (bool, error)) (bool, error) {
	transaction, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return false, failed(err)
	}
	done, err := work(transaction)
	if !done || err != nil {
		_ = transaction.Rollback() // the first error says more
		return false, err
	}
	if err := transaction.Commit(); err != nil {
		return false, failed(err)
	}
	return true, nil
}

// isThere says whether a statement finds a row.
func (s *SQLStore) isThere(ctx context.Context, text string, values ...any) (bool, error) {
	found, err := s.column(ctx, text, values...)
	return len(found) > 0, err
}

// column returns the texts of a column.
func (s *SQLStore) column(ctx context.Context, text string, values ...any) ([]string, error) {
	rows, err := s.db.QueryContext(ctx, s.statement(text), values...)
	if err != nil {
		return nil, failed(err)
	}
	defer rows.Close()
	var found []string
	for rows.Next() {
		var value string
		if err := rows.Scan(&value); err != nil {
			return nil, failed(err)
		}
		found = append(found, value)
	}
	if err := rows.Err(); err != nil {
		return nil, failed(err)
	}
	return found, nil
}

// insert inserts a row, and returns false if one with this key is there. Each driver has its own
// error for that, so the table itself is asked.
func (s *SQLStore) insert(ctx context.Context, question, key, statement string, values ...any) (bool, error) {
	_, err := s.run(ctx, s.db, statement, values...)
	if err == nil {
		return true, nil
	}
	if isThere, errOfQuestion := s.isThere(ctx, question, key); errOfQuestion == nil && isThere {
		return false, nil
	}
	return false, err
}

// deleteOld deletes rows by their keys: a search by time would lock the others. It deletes some at
// a time, so that one login does not wait for all.
func (s *SQLStore) deleteOld(ctx context.Context, table, column string, now time.Time, life time.Duration) error {
	selected := "SELECT " + column + " FROM " + table + " WHERE at < ? LIMIT 100"
	old, err := s.column(ctx, selected, now.Add(-life).Unix())
	if err != nil {
		return err
	}
	for _, key := range old {
		// Again with the time: the row may be another one meanwhile.
		remove := "DELETE FROM " + table + " WHERE " + column + " = ? AND at < ?"
		if _, err := s.run(ctx, s.db, remove, key, now.Add(-life).Unix()); err != nil {
			return err
		}
	}
	return nil
}

// AddUser implements Store.
func (s *SQLStore) AddUser(ctx context.Context, username, token string) error {
	name := keyOf(username)
	isNew, err := s.insert(ctx, "SELECT name FROM twoefay_user WHERE name = ?", name,
		"INSERT INTO twoefay_user (name, token) VALUES (?, ?)", name, token)
	if err != nil || isNew {
		return err
	}
	_, err = s.run(ctx, s.db, "UPDATE twoefay_user SET token = ? WHERE name = ?", token, name)
	return err
}

// Token implements Store.
func (s *SQLStore) Token(ctx context.Context, username string) (string, error) {
	found, err := s.column(ctx, "SELECT token FROM twoefay_user WHERE name = ?", keyOf(username))
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0], nil
}

// AddSecret implements Store.
func (s *SQLStore) AddSecret(ctx context.Context, username string, k []byte, now time.Time) error {
	if err := s.deleteOld(ctx, "twoefay_secret", "name", now, secretLife); err != nil {
		return err
	}
	insert := "INSERT INTO twoefay_secret (name, k, at) VALUES (?, ?, ?)"
	_, err := s.run(ctx, s.db, insert, keyOf(username), encode(k), now.Unix())
	return err
}

// Secrets implements Store.
func (s *SQLStore) Secrets(ctx context.Context, username string, now time.Time) ([][]byte, error) {
	selected := "SELECT k FROM twoefay_secret WHERE name = ? AND at > ?"
	found, err := s.column(ctx, selected, keyOf(username), now.Add(-secretLife).Unix())
	if err != nil {
		return nil, err
	}
	secrets := make([][]byte, len(found))
	for i, one := range found {
		if secrets[i], err = decode(one); err != nil {
			return nil, failed(err)
		}
	}
	return secrets, nil
}

// Pin implements Store.
func (s *SQLStore) Pin(ctx context.Context, username, device string, key JWK, k []byte) (bool, error) {
	name := keyOf(username)
	text, err := json.Marshal(key)
	if err != nil {
		return false, failed(err)
	}
	isPinned, err := s.transaction(ctx, func(tx *sql.Tx) (bool, error) {
		// This locks all rows of the user: of two that run at once, the second waits here, and then
		// finds no row. Without it, each of two with another k would wait for the other.
		if _, err := s.run(ctx, tx, "UPDATE twoefay_secret SET at = at WHERE name = ?", name); err != nil {
			return false, err
		}
		used, err := s.run(ctx, tx, "DELETE FROM twoefay_secret WHERE name = ? AND k = ?", name, encode(k))
		if err != nil || used != 1 {
			return false, err
		}
		if _, err := s.run(ctx, tx, "DELETE FROM twoefay_secret WHERE name = ?", name); err != nil {
			return false, err
		}
		insert := "INSERT INTO twoefay_phone (name, device, jwk) VALUES (?, ?, ?)"
		_, err = s.run(ctx, tx, insert, name, device, string(text))
		return true, err
	})
	if err == nil {
		return isPinned, nil
	}
	// Each driver has its own error for a row that is there already, so the table itself is asked.
	selected := "SELECT device FROM twoefay_phone WHERE name = ? AND device = ?"
	if isThere, errOfQuestion := s.isThere(ctx, selected, name, device); errOfQuestion == nil && isThere {
		return false, nil
	}
	return false, err
}

// Pins implements Store.
func (s *SQLStore) Pins(ctx context.Context, username string) (map[string]JWK, error) {
	selected := s.statement("SELECT device, jwk FROM twoefay_phone WHERE name = ? AND revoked = 0")
	rows, err := s.db.QueryContext(ctx, selected, keyOf(username))
	if err != nil {
		return nil, failed(err)
	}
	defer rows.Close()
	pins := map[string]JWK{}
	for rows.Next() {
		var (
			device, text string
			key          JWK
		)
		if err := rows.Scan(&device, &text); err != nil {
			return nil, failed(err)
		}
		if err := json.Unmarshal([]byte(text), &key); err != nil {
			return nil, failed(err)
		}
		pins[device] = key
	}
	if err := rows.Err(); err != nil {
		return nil, failed(err)
	}
	return pins, nil
}

// WasPinned implements Store.
func (s *SQLStore) WasPinned(ctx context.Context, username string) (bool, error) {
	return s.isThere(ctx, "SELECT device FROM twoefay_phone WHERE name = ?", keyOf(username))
}

// Unpin implements Store.
func (s *SQLStore) Unpin(ctx context.Context, username, device string) error {
	return s.revoke(ctx, keyOf(username), device)
}

func (s *SQLStore) revoke(ctx context.Context, name, device string) error {
	_, err := s.transaction(ctx, func(tx *sql.Tx) (bool, error) {
		// As in Pin: if this phone is pinned just now, this waits, and the others then find its row.
		if _, err := s.run(ctx, tx, "UPDATE twoefay_secret SET at = at WHERE name = ?", name); err != nil {
			return false, err
		}
		remove := "DELETE FROM twoefay_secret WHERE name = ? AND NOT EXISTS" +
			" (SELECT 1 FROM twoefay_phone WHERE name = ? AND device = ? AND revoked = 1)"
		if _, err := s.run(ctx, tx, remove, name, name, device); err != nil {
			return false, err
		}
		update := "UPDATE twoefay_phone SET revoked = 1 WHERE name = ? AND device = ?"
		_, err := s.run(ctx, tx, update, name, device)
		return true, err
	})
	return err
}

// UnpinByToken implements Store.
func (s *SQLStore) UnpinByToken(ctx context.Context, token, device string) error {
	names, err := s.column(ctx, "SELECT name FROM twoefay_user WHERE token = ?", token)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := s.revoke(ctx, name, device); err != nil {
			return err
		}
	}
	return nil
}

// Forget implements Store.
func (s *SQLStore) Forget(ctx context.Context, username string) error {
	_, err := s.transaction(ctx, func(tx *sql.Tx) (bool, error) {
		for _, table := range []string{"user", "secret", "phone"} {
			if _, err := s.run(ctx, tx, "DELETE FROM twoefay_"+table+" WHERE name = ?", keyOf(username)); err != nil {
				return false, err
			}
		}
		return true, nil
	})
	return err
}

// Open implements Store.
func (s *SQLStore) Open(ctx context.Context, request string, now time.Time) error {
	if err := s.deleteOld(ctx, "twoefay_request", "request", now, requestLife); err != nil {
		return err
	}
	_, err := s.run(ctx, s.db, "INSERT INTO twoefay_request (request, at) VALUES (?, ?)", request, now.Unix())
	return err
}

// Spend implements Store.
func (s *SQLStore) Spend(ctx context.Context, request string) (bool, error) {
	count, err := s.run(ctx, s.db, "DELETE FROM twoefay_request WHERE request = ?", request)
	return count == 1, err
}

// HasSeen implements Store.
func (s *SQLStore) HasSeen(ctx context.Context, event string) (bool, error) {
	return s.isThere(ctx, "SELECT event FROM twoefay_event WHERE event = ?", event)
}

// See implements Store.
func (s *SQLStore) See(ctx context.Context, event string, now time.Time) error {
	if err := s.deleteOld(ctx, "twoefay_event", "event", now, eventLife); err != nil {
		return err
	}
	_, err := s.insert(ctx, "SELECT event FROM twoefay_event WHERE event = ?", event,
		"INSERT INTO twoefay_event (event, at) VALUES (?, ?)", event, now.Unix())
	return err
}
