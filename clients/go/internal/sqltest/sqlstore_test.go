package sqltest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/lib/pq"
	_ "github.com/mattn/go-sqlite3"

	"twoefay"
	"twoefay/internal/storecheck"
)

var background = context.Background()

func open(t *testing.T, driver, source string, dialect twoefay.Dialect) (*sql.DB, *twoefay.SQLStore) {
	t.Helper()
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	store := twoefay.NewSQLStore(db, dialect)
	for i := 0; i < 2; i++ { // the second time, all tables are there
		if err := store.CreateTables(background); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range []string{"request", "event", "user", "secret", "phone"} {
		if _, err := db.Exec("DELETE FROM twoefay_" + table); err != nil {
			t.Fatal(err)
		}
	}
	return db, store
}

func TestSQLite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "shop.db")
	_, store := open(t, "sqlite3", file+"?_busy_timeout=10000&_txlock=immediate", twoefay.SQLite)
	storecheck.Check(t, store)
}

func TestPostgreSQL(t *testing.T) {
	_, store := open(t, "postgres", postgreSQL(t), twoefay.PostgreSQL)
	storecheck.Check(t, store)
}

func TestMariaDB(t *testing.T) {
	_, store := open(t, "mysql", mariaDB(t), twoefay.MySQL)
	storecheck.Check(t, store)
}

// The row is as the store wrote it before there were web phones.
func TestRowOfAnEarlierVersionCounts(t *testing.T) {
	db, store := open(t, "sqlite3", filepath.Join(t.TempDir(), "shop.db"), twoefay.SQLite)
	name := sha256.Sum256([]byte("ada"))
	_, err := db.Exec("INSERT INTO twoefay_phone (name, device, jwk) VALUES (?, ?, ?)",
		hex.EncodeToString(name[:]), "d1", `{"kty":"EC","crv":"P-256","x":"x","y":"y"}`)
	if err != nil {
		t.Fatal(err)
	}
	pins, err := store.Pins(background, "ada")
	if expected := (twoefay.JWK{Kty: "EC", Crv: "P-256", X: "x", Y: "y"}); err != nil || pins["d1"] != expected {
		t.Error(pins, err)
	}
}

// Two processes have two pools of connections. With SQLite, they share a file.
func TestTwoProcessesSpendOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "shop.db") + "?_busy_timeout=10000&_txlock=immediate"
	_, one := open(t, "sqlite3", file, twoefay.SQLite)
	_, other := open(t, "sqlite3", file, twoefay.SQLite)
	for i := 0; i < 20; i++ {
		if err := one.Open(background, "r", time.Now()); err != nil {
			t.Fatal(err)
		}
		results := make(chan bool)
		for _, store := range []*twoefay.SQLStore{one, other} {
			go func(store *twoefay.SQLStore) {
				isSpent, err := store.Spend(background, "r")
				if err != nil {
					t.Error(err)
				}
				results <- isSpent
			}(store)
		}
		if first, second := <-results, <-results; first == second {
			t.Fatal("spent twice, or never", first)
		}
	}
}

func TestErrorsAreNotHidden(t *testing.T) {
	db, store := open(t, "sqlite3", filepath.Join(t.TempDir(), "shop.db"), twoefay.SQLite)
	db.Close()
	_, errPin := store.Pin(background, "ada", "d1", twoefay.JWK{}, []byte("k"))
	_, errSpend := store.Spend(background, "r")
	_, errPins := store.Pins(background, "ada")
	for _, err := range []error{errPin, errSpend, errPins, store.See(background, "e", time.Now())} {
		if err == nil {
			t.Error("no error")
		}
	}
}
